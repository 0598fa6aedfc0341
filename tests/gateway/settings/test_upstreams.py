"""Upstreams: configured, found in the environment, or known."""

from urllib.parse import urlsplit

import pytest

from support.settings import SECRET
from thoughtline.dialects import DIALECTS
from thoughtline.gateway.settings import (
    checks,
)
from thoughtline.providers.catalogue import BY_NAME, infer_policy, matches_model
from thoughtline.providers.contracts import policy_names
from thoughtline.providers.known_providers import PROVIDERS

PLAIN = [one for one in PROVIDERS if one.host and one.policy == "generic" and len(one.keys) == 1]
PLAIN = [one for one in PLAIN if one.name != "upstage"]
"""Hosts of which nothing is known but where they are."""
COMPLETED = {"CLOUDFLARE_API_KEY", "CLOUDFLARE_API_TOKEN"}
COMPLETED |= {"AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "ANTHROPIC_FOUNDRY_API_KEY"}
"""Variables of providers whose address the environment has to complete."""


@pytest.mark.parametrize(
    ("variable", "name", "host"),
    [
        ("OPENAI_API_KEY", "openai", "api.openai.com"),
        ("ANTHROPIC_API_KEY", "anthropic", "api.anthropic.com"),
        ("DEEPSEEK_API_KEY", "deepseek", "api.deepseek.com"),
        ("MOONSHOT_API_KEY", "kimi", "api.moonshot.ai"),
        ("KIMI_API_KEY", "kimi-coding", "api.kimi.com"),
        ("GEMINI_API_KEY", "gemini", "generativelanguage.googleapis.com"),
        ("GOOGLE_API_KEY", "gemini", "generativelanguage.googleapis.com"),
        ("XAI_API_KEY", "xai", "api.x.ai"),
        ("ZAI_API_KEY", "glm", "api.z.ai"),
        ("ZHIPU_API_KEY", "glm", "api.z.ai"),
        ("MINIMAX_API_KEY", "minimax", "api.minimax.io"),
        ("DASHSCOPE_API_KEY", "qwen", "dashscope-intl.aliyuncs.com"),
        ("XIAOMI_API_KEY", "mimo", "api.xiaomimimo.com"),
        ("MIMO_API_KEY", "mimo", "api.xiaomimimo.com"),
        ("HUNYUAN_API_KEY", "hunyuan", "api.hunyuan.cloud.tencent.com"),
        ("STEPFUN_API_KEY", "stepfun", "api.stepfun.com"),
        ("MISTRAL_API_KEY", "mistral", "api.mistral.ai"),
        ("OPENROUTER_API_KEY", "openrouter", "openrouter.ai"),
        ("GROQ_API_KEY", "groq", "api.groq.com"),
        ("CEREBRAS_API_KEY", "cerebras", "api.cerebras.ai"),
        ("FIREWORKS_API_KEY", "fireworks", "api.fireworks.ai"),
        ("TOGETHER_API_KEY", "together", "api.together.ai"),
        ("SILICONFLOW_API_KEY", "siliconflow", "api.siliconflow.com"),
        ("NEBIUS_API_KEY", "nebius", "api.tokenfactory.nebius.com"),
        ("DEEPINFRA_API_KEY", "deepinfra", "api.deepinfra.com"),
        ("DEEPINFRA_TOKEN", "deepinfra", "api.deepinfra.com"),
        ("SAMBANOVA_API_KEY", "sambanova", "api.sambanova.ai"),
        ("OPENCODE_API_KEY", "opencode-go", "opencode.ai"),
        ("ZAI_CODING_CN_API_KEY", "glm-coding-cn", "open.bigmodel.cn"),
        ("MINIMAX_CN_API_KEY", "minimax-cn", "api.minimaxi.com"),
        ("ALIBABA_CODING_PLAN_API_KEY", "qwen-coding", "coding-intl.dashscope.aliyuncs.com"),
        ("MODELSTUDIO_API_KEY", "qwen-coding", "coding-intl.dashscope.aliyuncs.com"),
        ("QWEN_TOKEN_PLAN_API_KEY", "qwen-tokens", "token-plan.ap-southeast-1.maas.aliyuncs.com"),
        ("ALIBABA_TOKEN_PLAN_API_KEY", "qwen-tokens", "token-plan.ap-southeast-1.maas.aliyuncs"),
        ("QWEN_TOKEN_PLAN_CN_API_KEY", "qwen-tokens-cn", "token-plan.cn-beijing.maas.aliyuncs"),
        ("XIAOMI_TOKEN_PLAN_CN_API_KEY", "mimo-tokens-cn", "token-plan-cn.xiaomimimo.com"),
        ("XIAOMI_TOKEN_PLAN_AMS_API_KEY", "mimo-tokens-ams", "token-plan-ams.xiaomimimo.com"),
        ("XIAOMI_TOKEN_PLAN_SGP_API_KEY", "mimo-tokens-sgp", "token-plan-sgp.xiaomimimo.com"),
        ("ARK_API_KEY", "doubao", "ark.cn-beijing.volces.com"),
        ("VOLCENGINE_API_KEY", "doubao", "ark.cn-beijing.volces.com"),
        ("DOUBAO_API_KEY", "doubao", "ark.cn-beijing.volces.com"),
        ("LONGCAT_API_KEY", "longcat", "api.longcat.chat"),
        ("META_API_KEY", "meta", "api.meta.ai"),
        ("PERPLEXITY_API_KEY", "perplexity", "api.perplexity.ai"),
        ("PPLX_API_KEY", "perplexity", "api.perplexity.ai"),
        ("AWS_BEARER_TOKEN_BEDROCK", "bedrock", "bedrock-runtime.us-east-1.amazonaws.com"),
        ("ANTHROPIC_AWS_API_KEY", "bedrock-mantle", "bedrock-mantle.us-east-1.api.aws"),
        ("GOOGLE_CLOUD_API_KEY", "vertex", "aiplatform.googleapis.com"),
        ("OLLAMA_API_KEY", "ollama-cloud", "ollama.com"),
        ("BASETEN_API_KEY", "baseten", "inference.baseten.co"),
        ("NVIDIA_API_KEY", "nvidia", "integrate.api.nvidia.com"),
        ("NOVITA_API_KEY", "novita", "api.novita.ai"),
        ("HF_TOKEN", "huggingface", "router.huggingface.co"),
        ("AI_GATEWAY_API_KEY", "vercel", "ai-gateway.vercel.sh"),
        ("VERCEL_OIDC_TOKEN", "vercel", "ai-gateway.vercel.sh"),
        ("GITHUB_TOKEN", "github-models", "models.github.ai"),
        ("CHUTES_API_KEY", "chutes", "llm.chutes.ai"),
        ("TENCENT_TOKENHUB_API_KEY", "tencent", "tokenhub.tencentmaas.com"),
        ("TENCENT_CODING_PLAN_API_KEY", "tencent-coding", "api.lkeap.cloud.tencent.com"),
        ("QIANFAN_API_KEY", "qianfan", "qianfan.baidubce.com"),
        ("QIANFAN_TOKEN", "qianfan", "qianfan.baidubce.com"),
        ("INCEPTION_API_KEY", "inception", "api.inceptionlabs.ai"),
        ("ANT_LING_API_KEY", "ant-ling", "api.ant-ling.com"),
        ("UPSTAGE_API_KEY", "upstage", "api.upstage.ai"),
        *((p.keys[0], p.name, urlsplit(p.base_url).hostname) for p in PLAIN),
    ],
)
def test_a_key_in_the_environment_is_an_upstream(place, variable, name, host):
    settings = place.load(**{variable: SECRET})
    upstream = settings.upstreams[name]
    assert f"//{host}" in upstream.base_url
    assert upstream.key.reveal() == SECRET
    assert (upstream.env_key, upstream.source) == (variable, "environment")
    known = BY_NAME[name]
    assert upstream.models == known.models
    assert upstream.policy == (known.policy or infer_policy(upstream.base_url))
    assert next(iter(settings.upstreams)) == name  # before those without a key
    keyed = [u.name for u in settings.upstreams.values() if u.key]
    assert keyed == [p.name for p in PROVIDERS if variable in p.keys and p.name in keyed]
    known = place.load().upstreams[name]
    assert (known.source, known.env_key, bool(known.key)) == ("known", "", False)
    assert known.base_url == upstream.base_url


def test_every_variable_of_the_table_is_tested():
    tested = test_a_key_in_the_environment_is_an_upstream.pytestmark[0].args[1]
    variables = {key for provider in PROVIDERS for key in provider.keys}
    assert {variable for variable, _, _ in tested} == variables - COMPLETED


def test_the_table_is_sound(place):
    upstreams = place.load().upstreams
    assert list(upstreams) == [provider.name for provider in PROVIDERS if provider.located({})]
    for name, upstream in upstreams.items():
        assert upstream.name == name
        assert upstream.policy in policy_names()
        assert list(checks._upstream(upstream)) == []
    assert set(checks.DIALECTS) == set(DIALECTS)


def test_what_the_environment_completes_has_its_key_once_it_is_complete(place):
    named = {"AZURE_RESOURCE_NAME": "mine", "CLOUDFLARE_ACCOUNT_ID": "acct"}
    upstreams = place.load(AZURE_API_KEY=SECRET, CLOUDFLARE_API_TOKEN=SECRET, **named).upstreams
    for name in ("azure", "cloudflare", "workers-ai"):
        assert upstreams[name].key.reveal() == SECRET
        assert "{" not in upstreams[name].base_url
    assert "azure" not in place.load(AZURE_API_KEY=SECRET).upstreams


@pytest.mark.parametrize("name", ["openrouter", "groq", "cerebras", "together", "siliconflow"])
def test_hosts_claim_models_only_with_a_key(place, name):
    assert place.load().upstreams[name].models == ()
    assert place.load(**{f"{name.upper()}_API_KEY": SECRET}).upstreams[name].models


@pytest.mark.parametrize(
    ("env", "model", "name"),
    [
        ({}, "gpt-5.6", "openai"),
        ({}, "claude-opus-5-5", "anthropic"),
        ({}, "deepseek-v4-pro", "deepseek"),
        ({}, "kimi-k3", "kimi"),
        ({}, "kimi-for-coding", "kimi-coding"),
        ({"KIMI_API_KEY": "k"}, "kimi-k3", "kimi-coding"),
        ({"KIMI_API_KEY": "k", "MOONSHOT_API_KEY": "m"}, "kimi-k3", "kimi"),
        ({}, "MiniMax-M2", "minimax"),
        ({}, "sim/deepseek", "sim"),
        ({"OPENROUTER_API_KEY": "o"}, "sim/deepseek", "sim"),
        ({}, "deepseek/deepseek-v4", None),
        ({}, "deepseek-ai/DeepSeek-R1", None),
        ({"DEEPSEEK_API_KEY": "d"}, "deepseek-ai/DeepSeek-R1", None),
        ({"DEEPINFRA_API_KEY": "d"}, "deepseek-ai/DeepSeek-R1", "deepinfra"),
        ({"NEBIUS_API_KEY": "n"}, "moonshotai/Kimi-K2-Thinking", "nebius"),
        ({}, "moonshotai/Kimi-K2-Thinking", None),
        ({}, "Qwen/QwQ-32B", None),
        ({}, "DeepSeek-V4-Pro", "deepseek"),
        ({}, "QwQ-32B", "qwen"),
        ({}, "Qwen3-235B", "qwen"),
        ({}, "MiMo-V2", "mimo"),
        ({}, "mimov2", "mimo"),
        ({}, "mimo.v2-flash", "mimo"),
        ({}, "xiaomi-mimo-v2.5", "mimo"),
        ({}, "GPT-5.6", "openai"),
        ({}, "minimax-m3", "minimax"),
        ({"THOUGHTLINE_UPSTREAMS__MINE__MODELS": "*"}, "any/model", "mine"),
        ({"OPENROUTER_API_KEY": "o"}, "deepseek/deepseek-v4", "openrouter"),
        ({"GROQ_API_KEY": "g"}, "openai/gpt-oss-120b", "groq"),
        ({"GROQ_API_KEY": "g", "OPENROUTER_API_KEY": "o"}, "qwen/qwen3.7-max", "openrouter"),
        ({"CEREBRAS_API_KEY": "c"}, "gpt-oss-120b", "cerebras"),
        ({"FIREWORKS_API_KEY": "f", "GROQ_API_KEY": "g"}, "accounts/a/models/b", "fireworks"),
        ({}, "llama3", None),
        ({"THOUGHTLINE_UPSTREAMS__MINE__MODELS": "gpt-*"}, "gpt-5.6", "mine"),
        ({"THOUGHTLINE_UPSTREAMS__MINE__MODELS": "g*"}, "gpt-5.6", "mine"),
    ],
)
def test_patterns_lead_to_the_right_upstream(place, env, model, name):
    base = {"THOUGHTLINE_UPSTREAMS__MINE__BASE_URL": "http://m"}
    settings = place.load(**env, **(base if any("MINE" in n for n in env) else {}))
    claims = [
        (upstream.source == "configured", len(pattern), -position, upstream.name)
        for position, upstream in enumerate(settings.upstreams.values())
        for pattern in upstream.models
        if matches_model(pattern, model)
    ]
    assert max(claims, default=(None,))[-1] == name


def test_the_simulated_provider_is_always_there(place):
    sim = place.load().upstreams["sim"]
    assert (sim.base_url, sim.models) == ("sim://", ("sim/*",))


def test_local_servers_are_not_offered_to_others(place):
    assert "ollama" in place.load().upstreams
    assert "ollama" not in place.load({"host": "0.0.0.0", "allow_remote": True}).upstreams


def test_a_configured_upstream_takes_over_what_it_does_not_say(place):
    place.project("[upstreams.deepseek]\nidle_timeout = '1m'")
    settings = place.load(DEEPSEEK_API_KEY=SECRET)
    upstream = settings.upstreams["deepseek"]
    assert upstream.source == "configured"
    assert upstream.base_url == "https://api.deepseek.com"
    assert upstream.models == ("deepseek-*",)
    assert upstream.key.reveal() == SECRET
    assert upstream.base("messages") == "https://api.deepseek.com/anthropic/v1"
    assert upstream.base("chat") == "https://api.deepseek.com"
    assert settings.timeouts(upstream).idle == 60
    assert settings.timeouts(upstream).connect == settings.server.connect_timeout


def test_a_key_goes_only_where_it_belongs(place):
    place.project("[upstreams.deepseek]\nbase_url = 'https://mirror.example/'")
    upstream = place.load(DEEPSEEK_API_KEY=SECRET).upstreams["deepseek"]
    assert upstream.base_url == "https://mirror.example"
    assert not upstream.key
    assert not upstream.endpoints
    assert upstream.policy == "deepseek"  # a mirror is named after what it mirrors
    place.project("[upstreams.deepseek]\nbase_url = 'http://api.deepseek.com'")
    assert not place.load(DEEPSEEK_API_KEY=SECRET).upstreams["deepseek"].key


def test_a_key_can_be_declined(place):
    place.project("[upstreams.deepseek]\nenv_key = ''")
    assert not place.load(DEEPSEEK_API_KEY=SECRET).upstreams["deepseek"].key


@pytest.mark.parametrize("env_key", ["MY_KEY", "env:MY_KEY"])
def test_a_key_from_a_variable_of_ones_own(place, env_key):
    place.project(f"[upstreams.x]\nbase_url = 'https://api.x.ai/v1'\nenv_key = '{env_key}'")
    upstream = place.load(MY_KEY=SECRET).upstreams["x"]
    assert (upstream.key.reveal(), upstream.env_key) == (SECRET, "MY_KEY")
    assert upstream.policy == "xai"
    assert not place.load().upstreams["x"].key


def test_a_policy_is_named_in_any_case(place):
    place.project("[upstreams.mine]\nbase_url = 'http://m'\npolicy = 'DeepSeek'")
    assert place.load().upstreams["mine"].policy == "deepseek"
