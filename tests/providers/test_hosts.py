"""Which policy a host has, and how it takes a credential."""

import pytest

from thoughtline.providers.catalogue import infer_policy, takes_bearer
from thoughtline.providers.contracts import policy_names
from thoughtline.providers.hosts import HOSTS


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.deepseek.com/v1", "deepseek"),
        ("https://api.deepseek.com/anthropic", "deepseek"),
        ("https://API.OpenAI.com/v1", "openai"),
        ("https://chatgpt.com/backend-api/codex", "codex"),
        ("https://mine.openai.azure.com/openai/v1", "azure"),
        ("https://api.moonshot.cn/v1", "kimi"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "bedrock"),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/openai/v1", "bedrock"),
        ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn", "bedrock"),
        ("https://bedrock-runtime.eusc-de-east-1.amazonaws.eu", "bedrock"),
        ("https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com", "bedrock"),
        ("https://bedrock-mantle.us-east-1.api.aws/anthropic", "bedrock"),
        ("https://aws-external-anthropic.us-east-1.api.aws", "anthropic"),
        ("https://claude.googleapis.com/v1/projects/p", "anthropic"),
        ("https://us-central1-aiplatform.googleapis.com", "vertex"),
        ("https://aiplatform.googleapis.com/v1", "vertex"),
        ("https://aiplatform.us.rep.googleapis.com", "vertex"),
        ("https://mine.services.ai.azure.com/anthropic", "azure"),
        ("https://ws.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1", "qwen"),
        ("https://coding-intl.dashscope.aliyuncs.com/v1", "qwen"),
        ("https://cn-hongkong.dashscope.aliyuncs.com/v1", "qwen"),
        ("https://ark.cn-beijing.volces.com/api/v3", "doubao"),
        ("https://ollama.com/v1", "ollama"),
        ("https://model-1.api.baseten.co/v1", "baseten"),
        ("https://integrate.api.nvidia.com/v1", "nvidia"),
        ("https://api.novita.ai/openai", "novita"),
        ("https://router.huggingface.co/v1", "huggingface"),
        ("https://ai-gateway.vercel.sh", "vercel"),
        ("https://gateway.ai.cloudflare.com/v1/a/g/compat", "cloudflare"),
        ("https://gateway.ai.cloudflare.com/v1/a/g/anthropic", "anthropic"),
        ("https://gateway.ai.cloudflare.com/v1/a/g/openai", "openai"),
        ("https://gateway.ai.cloudflare.com/v1/a/g/google-ai-studio", "gemini"),
        ("https://api.kimi.com/coding/v1", "kimi"),
        ("https://api.z.ai/api/coding/paas/v4", "glm"),
        ("https://tokenhub-intl.tencentcloudmaas.com/v1", "hunyuan"),
        ("https://token-plan-sgp.xiaomimimo.com/v1", "mimo"),
        ("https://api.individual.githubcopilot.com", "copilot"),
        ("https://evil.example/gateway.ai.cloudflare.com/v1/a/g/anthropic", "generic"),
        ("https://api.tokenfactory.nebius.com/v1", "nebius"),
        ("https://api.tokenfactory.us-central1.nebius.com/v1", "nebius"),
        ("https://api.studio.nebius.ai/v1", "nebius"),
        ("https://api.deepinfra.com/v1/openai", "deepinfra"),
        ("https://api.sambanova.ai/v1", "sambanova"),
        ("https://opencode.ai/zen/go/v1", "opencode-go"),
        ("https://opencode.ai/zen/v1", "opencode-go"),
        ("http://127.0.0.1:8000/v1", "generic"),
        ("https://api.deepseek.com.evil.example", "generic"),
        ("not a url", "generic"),
    ],
)
def test_inference_from_the_host(url, name):
    assert infer_policy(url) == name


@pytest.mark.parametrize(
    ("url", "bearer"),
    [
        ("https://bedrock-runtime.eu-west-1.amazonaws.com/anthropic/v1", True),
        ("https://bedrock-mantle.eu-west-1.api.aws/anthropic", True),
        ("https://openrouter.ai/api/v1", True),
        ("https://api.anthropic.com", False),
        ("https://generativelanguage.googleapis.com", False),
    ],
)
def test_hosts_that_take_a_bearer_token_in_every_dialect(url, bearer):
    assert takes_bearer(url) is bearer


def test_each_host_has_a_policy_of_the_table():
    assert {policy for _, policy in HOSTS} <= set(policy_names())
