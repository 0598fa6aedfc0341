"""Where requests to every known provider end up, however a client spells their path.

The table is written out from the providers' own documents, and not made from the catalogue.
"""

import pytest

from thoughtline.agents.provider import Provider, resolve
from thoughtline.dialects import DIALECTS
from thoughtline.engine.routes import parse
from thoughtline.gateway.build import make_directory
from thoughtline.gateway.settings import Settings, UpstreamSettings
from thoughtline.gateway.settings.upstreams import complete
from thoughtline.providers.known_providers import PROVIDERS, SIMULATED

CHAT, RESPONSES, MESSAGES = "chat/completions", "responses", "messages"
GEMINI = "models/m:generateContent"

URLS = {
    "openai": {
        CHAT: "https://api.openai.com/v1/chat/completions",
        RESPONSES: "https://api.openai.com/v1/responses",
        "responses/compact": "https://api.openai.com/v1/responses/compact",
        "models": "https://api.openai.com/v1/models",
        "embeddings": "https://api.openai.com/v1/embeddings",
    },
    "anthropic": {
        MESSAGES: "https://api.anthropic.com/v1/messages",
        "messages/count_tokens": "https://api.anthropic.com/v1/messages/count_tokens",
        "messages/batches": "https://api.anthropic.com/v1/messages/batches",
        "models": "https://api.anthropic.com/v1/models",
    },
    "gemini": {
        GEMINI: "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        "models/m:countTokens": "https://generativelanguage.googleapis.com/v1beta/models/m:countTokens",
        CHAT: "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
        "embeddings": "https://generativelanguage.googleapis.com/v1beta/openai/embeddings",
    },
    "deepseek": {
        CHAT: "https://api.deepseek.com/v1/chat/completions",
        RESPONSES: "https://api.deepseek.com/v1/responses",
        MESSAGES: "https://api.deepseek.com/anthropic/v1/messages",
        "models": "https://api.deepseek.com/v1/models",
    },
    "kimi": {
        CHAT: "https://api.moonshot.ai/v1/chat/completions",
        MESSAGES: "https://api.moonshot.ai/anthropic/v1/messages",
        "models": "https://api.moonshot.ai/v1/models",
    },
    "kimi-coding": {
        CHAT: "https://api.kimi.com/coding/v1/chat/completions",
        MESSAGES: "https://api.kimi.com/coding/v1/messages",
        RESPONSES: "https://api.kimi.com/coding/v1/responses",
        "models": "https://api.kimi.com/coding/v1/models",
    },
    "xai": {
        CHAT: "https://api.x.ai/v1/chat/completions",
        RESPONSES: "https://api.x.ai/v1/responses",
        "models": "https://api.x.ai/v1/models",
    },
    "glm": {
        CHAT: "https://api.z.ai/api/paas/v4/chat/completions",
        MESSAGES: "https://api.z.ai/api/anthropic/v1/messages",
        "embeddings": "https://api.z.ai/api/paas/v4/embeddings",
    },
    "minimax": {
        CHAT: "https://api.minimax.io/v1/chat/completions",
        MESSAGES: "https://api.minimax.io/anthropic/v1/messages",
    },
    "qwen": {
        CHAT: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions",
        MESSAGES: "https://dashscope-intl.aliyuncs.com/apps/anthropic/v1/messages",
        "embeddings": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/embeddings",
    },
    "mimo": {
        CHAT: "https://api.xiaomimimo.com/v1/chat/completions",
        MESSAGES: "https://api.xiaomimimo.com/anthropic/v1/messages",
    },
    "hunyuan": {CHAT: "https://api.hunyuan.cloud.tencent.com/v1/chat/completions"},
    "stepfun": {CHAT: "https://api.stepfun.com/v1/chat/completions"},
    "mistral": {
        CHAT: "https://api.mistral.ai/v1/chat/completions",
        "embeddings": "https://api.mistral.ai/v1/embeddings",
        "models": "https://api.mistral.ai/v1/models",
    },
    "openrouter": {
        CHAT: "https://openrouter.ai/api/v1/chat/completions",
        RESPONSES: "https://openrouter.ai/api/v1/responses",
        MESSAGES: "https://openrouter.ai/api/v1/messages",
        "models": "https://openrouter.ai/api/v1/models",
    },
    "groq": {
        CHAT: "https://api.groq.com/openai/v1/chat/completions",
        "models": "https://api.groq.com/openai/v1/models",
    },
    "cerebras": {CHAT: "https://api.cerebras.ai/v1/chat/completions"},
    "fireworks": {
        CHAT: "https://api.fireworks.ai/inference/v1/chat/completions",
        "embeddings": "https://api.fireworks.ai/inference/v1/embeddings",
    },
    "together": {CHAT: "https://api.together.ai/v1/chat/completions"},
    "siliconflow": {CHAT: "https://api.siliconflow.com/v1/chat/completions"},
    "nebius": {CHAT: "https://api.tokenfactory.nebius.com/v1/chat/completions"},
    "deepinfra": {
        CHAT: "https://api.deepinfra.com/v1/openai/chat/completions",
        "models": "https://api.deepinfra.com/v1/openai/models",
        "embeddings": "https://api.deepinfra.com/v1/openai/embeddings",
    },
    "sambanova": {CHAT: "https://api.sambanova.ai/v1/chat/completions"},
    "opencode-go": {
        CHAT: "https://opencode.ai/inference/go/openai/v1/chat/completions",
        RESPONSES: "https://opencode.ai/inference/go/openai/v1/responses",
        MESSAGES: "https://opencode.ai/inference/go/anthropic/v1/messages",
        GEMINI: "https://opencode.ai/inference/go/google/v1beta/models/m:generateContent",
    },
    "opencode": {
        CHAT: "https://opencode.ai/inference/openai/v1/chat/completions",
        RESPONSES: "https://opencode.ai/inference/openai/v1/responses",
        MESSAGES: "https://opencode.ai/inference/anthropic/v1/messages",
        GEMINI: "https://opencode.ai/inference/google/v1beta/models/m:generateContent",
    },
    "glm-coding": {
        CHAT: "https://api.z.ai/api/coding/paas/v4/chat/completions",
        MESSAGES: "https://api.z.ai/api/anthropic/v1/messages",
    },
    "glm-coding-cn": {
        CHAT: "https://open.bigmodel.cn/api/coding/paas/v4/chat/completions",
        MESSAGES: "https://open.bigmodel.cn/api/anthropic/v1/messages",
    },
    "minimax-cn": {
        CHAT: "https://api.minimaxi.com/v1/chat/completions",
        MESSAGES: "https://api.minimaxi.com/anthropic/v1/messages",
    },
    "qwen-coding": {
        CHAT: "https://coding-intl.dashscope.aliyuncs.com/v1/chat/completions",
        MESSAGES: "https://coding-intl.dashscope.aliyuncs.com/apps/anthropic/v1/messages",
    },
    "qwen-tokens": {
        CHAT: "https://token-plan.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1/chat/completions",
        RESPONSES: "https://token-plan.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1/responses",
        MESSAGES: "https://token-plan.ap-southeast-1.maas.aliyuncs.com/apps/anthropic/v1/messages",
    },
    "qwen-tokens-cn": {
        CHAT: "https://token-plan.cn-beijing.maas.aliyuncs.com/compatible-mode/v1/chat/completions",
        RESPONSES: "https://token-plan.cn-beijing.maas.aliyuncs.com/compatible-mode/v1/responses",
        MESSAGES: "https://token-plan.cn-beijing.maas.aliyuncs.com/apps/anthropic/v1/messages",
    },
    **{
        f"mimo-tokens-{place}": {
            CHAT: f"https://token-plan-{place}.xiaomimimo.com/v1/chat/completions",
            MESSAGES: f"https://token-plan-{place}.xiaomimimo.com/anthropic/v1/messages",
        }
        for place in ("cn", "ams", "sgp")
    },
    "stepfun-plan": {CHAT: "https://api.stepfun.ai/step_plan/v1/chat/completions"},
    "doubao": {
        CHAT: "https://ark.cn-beijing.volces.com/api/v3/chat/completions",
        RESPONSES: "https://ark.cn-beijing.volces.com/api/v3/responses",
        MESSAGES: "https://ark.cn-beijing.volces.com/api/compatible/v1/messages",
    },
    "doubao-coding": {CHAT: "https://ark.cn-beijing.volces.com/api/coding/v3/chat/completions"},
    "longcat": {
        CHAT: "https://api.longcat.chat/openai/v1/chat/completions",
        MESSAGES: "https://api.longcat.chat/anthropic/v1/messages",
    },
    "qianfan": {CHAT: "https://qianfan.baidubce.com/v2/chat/completions"},
    "meta": {RESPONSES: "https://api.meta.ai/v1/responses"},
    "perplexity": {
        CHAT: "https://api.perplexity.ai/chat/completions",
        RESPONSES: "https://api.perplexity.ai/v1/responses",
    },
    "inception": {CHAT: "https://api.inceptionlabs.ai/v1/chat/completions"},
    "ant-ling": {CHAT: "https://api.ant-ling.com/v1/chat/completions"},
    "bedrock": {
        RESPONSES: "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/responses",
        CHAT: "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/chat/completions",
        MESSAGES: "https://bedrock-runtime.eu-west-1.amazonaws.com/anthropic/v1/messages",
    },
    "bedrock-mantle": {
        CHAT: "https://bedrock-mantle.eu-west-1.api.aws/v1/chat/completions",
        RESPONSES: "https://bedrock-mantle.eu-west-1.api.aws/openai/v1/responses",
        MESSAGES: "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages",
        "messages/count_tokens": "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages/count_tokens",
    },
    "anthropic-aws": {
        MESSAGES: "https://aws-external-anthropic.eu-west-1.api.aws/v1/messages",
        "messages/count_tokens": "https://aws-external-anthropic.eu-west-1.api.aws/v1/messages/count_tokens",
        "models": "https://aws-external-anthropic.eu-west-1.api.aws/v1/models",
    },
    "anthropic-gcp": {
        MESSAGES: "https://claude.googleapis.com/v1/projects/proj-1/locations/global/workspaces/ws-1/invoke/v1/messages",
        "messages/count_tokens": "https://claude.googleapis.com/v1/projects/proj-1/locations/global/workspaces/ws-1/invoke/v1/messages/count_tokens",
    },
    "vertex": {
        GEMINI: "https://aiplatform.googleapis.com/v1/publishers/google/models/m:generateContent",
        "models/m:countTokens": "https://aiplatform.googleapis.com/v1/publishers/google/models/m:countTokens",
    },
    "azure": {
        RESPONSES: "https://my-resource.services.ai.azure.com/openai/v1/responses",
        CHAT: "https://my-resource.services.ai.azure.com/openai/v1/chat/completions",
        MESSAGES: "https://my-resource.services.ai.azure.com/anthropic/v1/messages",
    },
    "ollama-cloud": {
        CHAT: "https://ollama.com/v1/chat/completions",
        RESPONSES: "https://ollama.com/v1/responses",
        MESSAGES: "https://ollama.com/v1/messages",
    },
    "baseten": {CHAT: "https://inference.baseten.co/v1/chat/completions"},
    "nvidia": {CHAT: "https://integrate.api.nvidia.com/v1/chat/completions"},
    "novita": {
        CHAT: "https://api.novita.ai/openai/v1/chat/completions",
        MESSAGES: "https://api.novita.ai/anthropic/v1/messages",
    },
    "huggingface": {
        CHAT: "https://router.huggingface.co/v1/chat/completions",
        RESPONSES: "https://router.huggingface.co/v1/responses",
    },
    "vercel": {
        CHAT: "https://ai-gateway.vercel.sh/v1/chat/completions",
        RESPONSES: "https://ai-gateway.vercel.sh/v1/responses",
        MESSAGES: "https://ai-gateway.vercel.sh/v1/messages",
    },
    "cloudflare": {
        CHAT: "https://gateway.ai.cloudflare.com/v1/acct1/default/compat/chat/completions",
        RESPONSES: "https://gateway.ai.cloudflare.com/v1/acct1/default/openai/responses",
        MESSAGES: "https://gateway.ai.cloudflare.com/v1/acct1/default/anthropic/v1/messages",
    },
    "workers-ai": {
        CHAT: "https://api.cloudflare.com/client/v4/accounts/acct1/ai/v1/chat/completions",
    },
    "github-models": {CHAT: "https://models.github.ai/inference/chat/completions"},
    "chutes": {CHAT: "https://llm.chutes.ai/v1/chat/completions"},
    "tencent": {
        CHAT: "https://tokenhub.tencentmaas.com/v1/chat/completions",
        RESPONSES: "https://tokenhub.tencentmaas.com/v1/responses",
        MESSAGES: "https://tokenhub.tencentmaas.com/v1/messages",
    },
    "tencent-intl": {
        CHAT: "https://tokenhub-intl.tencentcloudmaas.com/v1/chat/completions",
        RESPONSES: "https://tokenhub-intl.tencentcloudmaas.com/v1/responses",
        MESSAGES: "https://tokenhub-intl.tencentcloudmaas.com/v1/messages",
    },
    "tencent-coding": {CHAT: "https://api.lkeap.cloud.tencent.com/coding/v3/chat/completions"},
    "upstage": {CHAT: "https://api.upstage.ai/v1/solar/chat/completions"},
    "venice": {CHAT: "https://api.venice.ai/api/v1/chat/completions"},
    "poe": {CHAT: "https://api.poe.com/v1/chat/completions"},
    "scaleway": {CHAT: "https://api.scaleway.ai/v1/chat/completions"},
    "ovhcloud": {CHAT: "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1/chat/completions"},
    "nano-gpt": {CHAT: "https://nano-gpt.com/api/v1/chat/completions"},
    "requesty": {CHAT: "https://router.requesty.ai/v1/chat/completions"},
    "llmgateway": {CHAT: "https://api.llmgateway.io/v1/chat/completions"},
    "friendli": {CHAT: "https://api.friendli.ai/serverless/v1/chat/completions"},
    "wandb": {CHAT: "https://api.inference.wandb.ai/v1/chat/completions"},
    "synthetic": {CHAT: "https://api.synthetic.new/openai/v1/chat/completions"},
    "modelscope": {CHAT: "https://api-inference.modelscope.cn/v1/chat/completions"},
    "zenmux": {CHAT: "https://zenmux.ai/api/v1/chat/completions"},
    "tinfoil": {CHAT: "https://inference.tinfoil.sh/v1/chat/completions"},
    "nearai": {CHAT: "https://cloud-api.near.ai/v1/chat/completions"},
    "digitalocean": {CHAT: "https://inference.do-ai.run/v1/chat/completions"},
    "codex": {
        RESPONSES: "https://chatgpt.com/backend-api/codex/responses",
        "responses/compact": "https://chatgpt.com/backend-api/codex/responses/compact",
        "models": "https://chatgpt.com/backend-api/codex/models",
    },
    "copilot": {
        CHAT: "https://api.githubcopilot.com/chat/completions",
        RESPONSES: "https://api.githubcopilot.com/responses",
        MESSAGES: "https://api.githubcopilot.com/v1/messages",
        "models": "https://api.githubcopilot.com/models",
        "embeddings": "https://api.githubcopilot.com/embeddings",
    },
    "ollama": {
        CHAT: "http://127.0.0.1:11434/v1/chat/completions",
        RESPONSES: "http://127.0.0.1:11434/v1/responses",
        MESSAGES: "http://127.0.0.1:11434/v1/messages",
    },
    "lmstudio": {
        CHAT: "http://127.0.0.1:1234/v1/chat/completions",
        RESPONSES: "http://127.0.0.1:1234/v1/responses",
        MESSAGES: "http://127.0.0.1:1234/v1/messages",
    },
}
BARE = {"deepseek": ("chat/completions", "responses", "models")}
"""Paths that are left without the version that a client left out: the provider takes both."""
ROWS = [(name, path, url) for name, urls in URLS.items() for path, url in urls.items()]
ENV = {
    "AWS_REGION": "eu-west-1",
    "AZURE_RESOURCE_NAME": "my-resource",
    "ANTHROPIC_GOOGLE_CLOUD_PROJECT": "proj-1",
    "ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID": "ws-1",
    "CLOUDFLARE_ACCOUNT_ID": "acct1",
}
"""What completes the addresses that depend on the environment."""
DIRECTORY = make_directory(Settings(upstreams=complete({}, ENV, local=True)))


def sent_to(path, directory=DIRECTORY, method="POST"):
    route = parse(method, path)
    upstream = directory.pick(route.upstream, route.model)
    spoken = upstream.translates(route.dialect) if route.dialect else ""
    assert not spoken, f"{path} is translated to {spoken}"
    return upstream.url(route.family, route.path)


def test_every_known_name_is_in_the_table():
    assert set(URLS) == {provider.name for provider in PROVIDERS} - {SIMULATED}


@pytest.mark.parametrize(("name", "path", "url"), ROWS)
def test_the_final_url_in_every_form_of_the_path(name, path, url):
    version = "/v1beta" if path.startswith("models/") else "/v1"
    method = "GET" if path == "models" else "POST"
    for form in (f"{version}/{path}", f"{version}{version}/{path}"):
        assert sent_to(f"/u/{name}{form}", method=method) == url, form
    bare = url.replace("/v1/", "/") if path in BARE.get(name, ()) else url
    assert sent_to(f"/u/{name}/{path}", method=method) == bare
    own = url.split("/", 3)[3]
    assert sent_to(f"/u/{name}/{own}", method=method) == url  # the base URL of its own documents


@pytest.mark.parametrize("name", URLS)
def test_a_client_of_any_other_dialect_ends_at_one_that_it_speaks(name):
    upstream = DIRECTORY.pick(name, "")
    for dialect in DIALECTS:
        if spoken := upstream.translates(dialect):
            path = DIALECTS[spoken].request_path("m", stream=False)
            form = path.removeprefix("/v1beta/").removeprefix("/v1/")
            assert upstream.url(spoken, path) == URLS[name][form]


@pytest.mark.parametrize(
    ("name", "dialect"),
    [(provider.name, spoken) for provider in PROVIDERS for spoken in provider.dialects],
)
def test_the_library_ends_at_the_same_places(name, dialect):
    if name == SIMULATED:
        return
    path = DIALECTS[dialect].request_path("m")
    form = path.removeprefix("/v1beta/").removeprefix("/v1/").partition("?")[0]
    wanted = URLS[name][form.replace("streamGenerate", "generate")]
    asked = {"model": "m", "key": "k", "dialect": dialect}
    found = resolve(Provider(name, **asked), ENV)
    assert found.url.partition("?")[0].replace("streamGenerate", "generate") == wanted
    base = next(one.located(ENV).base_url for one in PROVIDERS if one.name == name)
    if wanted.startswith(base):
        for said in (base, f"{base}/"):
            found = resolve(Provider(name, base_url=said, **asked), ENV)
            assert found.url.partition("?")[0].replace("streamGenerate", "generate") == wanted


@pytest.mark.parametrize(("name", "path", "url"), ROWS)
def test_so_does_a_configured_upstream_of_another_name(name, path, url):
    known = DIRECTORY.pick(name, "")
    mine = UpstreamSettings(name="mine", base_url=known.base_url, endpoints=dict(known.endpoints))
    directory = make_directory(Settings(upstreams={"mine": mine}))
    method = "GET" if path == "models" else "POST"
    version = "/v1beta" if path.startswith("models/") else "/v1"
    assert sent_to(f"/u/mine{version}/{path}", directory, method) == url


@pytest.mark.parametrize(
    "base", ["https://x.example", "https://x.example/anthropic", "http://[::1]:1"]
)
@pytest.mark.parametrize(
    ("form", "path"),
    [
        ("messages", "/v1/messages"),
        ("messages/count_tokens", "/v1/messages/count_tokens"),
        ("models/m:streamGenerateContent", "/v1beta/models/m:streamGenerateContent"),
        ("models/m:countTokens", "/v1beta/models/m:countTokens"),
    ],
)
def test_apis_that_have_a_version_everywhere_get_the_one_that_is_left_out(base, form, path):
    mine = UpstreamSettings(name="mine", base_url=base)
    directory = make_directory(Settings(upstreams={"mine": mine}))
    assert sent_to(f"/u/mine/{form}", directory) == base + path
