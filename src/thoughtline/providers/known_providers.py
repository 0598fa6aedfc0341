"""The providers that are known by name, so that nothing has to be configured: a row for each.

A row says where a provider is, in which variables people keep its key, and which model names are
its own. Labs own their models' names; hosts serve everybody's (`owner/model`), so theirs count only
when a key for them was found, and mostly a client says `/u/NAME`.

`{VARIABLE}` in an address is what the environment says, `{ONE|OTHER=default}` the first of several
that is set. A row whose address the environment does not complete is left out.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

SIMULATED = "sim"
SCHEME = "sim://"
"""The base URL of the built-in simulated provider: no network, served in the process."""

OWNED = "*/*"


_BLANK = re.compile(r"\{([A-Za-z0-9_|]+)(=[^}]*)?\}")


class KnownProvider(Struct, frozen=True):
    """One provider that needs no configuration but a key."""

    name: str
    base_url: str
    keys: tuple[str, ...] = ()  # variables, the first one that is set counts
    models: tuple[str, ...] = ()
    host: bool = False  # serves other people's models: patterns count only with a key
    local: bool = False  # on this machine: offered to clients on this machine only
    websockets: bool = False
    policy: str = ""  # where the host does not say it
    endpoints: dict[str, str] = {}  # dialects that are spoken elsewhere on the host
    speaks: tuple[str, ...] = ("chat",)  # dialects at its base URL, the preferred one first
    aliases: tuple[str, ...] = ()  # other names that people have for it
    unversioned: bool = False  # takes paths without a version as well
    bare: tuple[str, ...] = ()  # dialects whose paths have no version there; "": what is of none

    @property
    def dialects(self) -> tuple[str, ...]:
        """All dialects that it speaks, the preferred one first."""
        return tuple(dict.fromkeys((*self.speaks, *self.endpoints)))

    def key_variable(self, env: Mapping[str, str]) -> str:
        """Return the first variable that holds a key; empty when none does."""
        return next((name for name in self.keys if env.get(name, "").strip()), "")

    def located(self, env: Mapping[str, str]) -> Self | None:
        """Return the row with its addresses complete; None where the environment lacks a part."""
        if not self.is_completed:
            return self
        urls = {"": self.base_url, **self.endpoints}
        filled = {dialect: _filled(url, env) for dialect, url in urls.items()}
        base_url = filled.pop("")
        return replace(self, base_url=base_url, endpoints=filled) if base_url else None

    @property
    def is_completed(self) -> bool:
        """Whether its address depends on the environment."""
        return "{" in self.base_url

    @property
    def missing(self) -> str:
        """The variables that complete its address, where they have no default."""
        blanks = _BLANK.findall(self.base_url)
        return ", ".join(names.partition("|")[0] for names, default in blanks if not default)

    def owns(self, url: str) -> bool:
        """Whether a URL is at this provider's own host: its key is sent nowhere else."""
        try:
            place = urlsplit(url)
        except ValueError:
            return False
        scheme, host = urlsplit(self.base_url)[:2]
        return place.scheme == scheme and _pattern(host).fullmatch(place.netloc) is not None

    def is_at(self, base_url: str) -> bool:
        """Whether this is its base URL."""
        return _pattern(self.base_url).fullmatch(base_url.rstrip("/")) is not None


def _filled(url: str, env: Mapping[str, str]) -> str:
    """A URL with what the environment says in its blanks; empty where it does not say it."""
    missing = False

    def value(blank: re.Match[str]) -> str:
        nonlocal missing
        names, default = blank[1].split("|"), (blank[2] or "")[1:]
        found = next((value for name in names if (value := env.get(name, "").strip())), default)
        missing = missing or re.fullmatch(r"[A-Za-z0-9_-]+", found) is None
        return found

    made = _BLANK.sub(value, url)
    return "" if missing else made


@lru_cache(maxsize=512)
def _pattern(text: str) -> re.Pattern[str]:
    """What matches a host or an address, whatever stands in its blanks."""
    pieces = _BLANK.split(text)[::3]
    return re.compile("[A-Za-z0-9_-]+".join(map(re.escape, pieces)))


def _host(name: str, base_url: str, *keys: str, **more: Any) -> KnownProvider:
    """A row of a host: its models have their labs' names, so a client says `/u/NAME`."""
    return KnownProvider(name, base_url, keys, host=True, **more)


_AWS_REGION = "{AWS_REGION|AWS_DEFAULT_REGION=us-east-1}"
_BEDROCK = f"https://bedrock-runtime.{_AWS_REGION}.amazonaws.com"
_MANTLE = f"https://bedrock-mantle.{_AWS_REGION}.api.aws"
_AZURE = "https://{AZURE_RESOURCE_NAME|ANTHROPIC_FOUNDRY_RESOURCE}.services.ai.azure.com"
_CLOUDFLARE = (
    "https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID=default}"
)
_QWEN_TOKENS = "https://token-plan.ap-southeast-1.maas.aliyuncs.com"
_QWEN_TOKENS_CN = "https://token-plan.cn-beijing.maas.aliyuncs.com"

PROVIDERS: tuple[KnownProvider, ...] = (
    # -- labs --------------------------------------------------------------------------------
    KnownProvider(
        "openai",
        "https://api.openai.com",
        ("OPENAI_API_KEY",),
        ("gpt-*", "chatgpt-*", "codex-*", "computer-use-*", "o1*", "o3*", "o4*"),
        websockets=True,
        speaks=("responses", "chat"),
    ),
    KnownProvider(
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        ("claude-*",),
        speaks=("messages",),
    ),
    KnownProvider(
        "gemini",
        "https://generativelanguage.googleapis.com",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("gemini-*", "models/gemini-*", "gemma-*"),
        endpoints={"chat": "https://generativelanguage.googleapis.com/v1beta/openai"},
        speaks=("gemini",),
    ),
    KnownProvider(
        "deepseek",
        "https://api.deepseek.com",
        ("DEEPSEEK_API_KEY",),
        ("deepseek-*",),
        endpoints={"messages": "https://api.deepseek.com/anthropic/v1"},
        speaks=("chat", "responses"),
        unversioned=True,
    ),
    KnownProvider(
        "kimi",
        "https://api.moonshot.ai",
        ("MOONSHOT_API_KEY",),
        ("kimi-*", "moonshot-*"),
        endpoints={"messages": "https://api.moonshot.ai/anthropic/v1"},
    ),
    # a platform of its own, with keys of its own
    KnownProvider(
        "kimi-coding",
        "https://api.kimi.com/coding",
        ("KIMI_API_KEY",),
        ("kimi-for-coding*", "kimi-*", "k3", "k3-*", "k3.*"),
        speaks=("chat", "messages", "responses"),
    ),
    KnownProvider(
        "xai",
        "https://api.x.ai",
        ("XAI_API_KEY",),
        ("grok-*",),
        websockets=True,
        speaks=("responses", "chat"),
    ),
    KnownProvider(
        "glm",
        "https://api.z.ai/api/paas/v4",
        ("ZAI_API_KEY", "ZHIPU_API_KEY"),
        ("glm-*",),
        endpoints={"messages": "https://api.z.ai/api/anthropic/v1"},
    ),
    # by name only: its keys have the same variables, and its models the same names
    KnownProvider(
        "glm-coding",
        "https://api.z.ai/api/coding/paas/v4",
        ("ZAI_API_KEY",),
        endpoints={"messages": "https://api.z.ai/api/anthropic/v1"},
        aliases=("zai-coding",),
    ),
    KnownProvider(
        "glm-coding-cn",
        "https://open.bigmodel.cn/api/coding/paas/v4",
        ("ZAI_CODING_CN_API_KEY", "ZHIPU_API_KEY"),
        endpoints={"messages": "https://open.bigmodel.cn/api/anthropic/v1"},
    ),
    KnownProvider(
        "minimax",
        "https://api.minimax.io",
        ("MINIMAX_API_KEY",),
        ("MiniMax-*",),
        endpoints={"messages": "https://api.minimax.io/anthropic/v1"},
    ),
    KnownProvider(
        "minimax-cn",
        "https://api.minimaxi.com",
        ("MINIMAX_CN_API_KEY",),
        endpoints={"messages": "https://api.minimaxi.com/anthropic/v1"},
    ),
    KnownProvider(
        "qwen",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        ("qwen-*", "qwen[0-9]*", "qwq*", "qvq*"),
        endpoints={"messages": "https://dashscope-intl.aliyuncs.com/apps/anthropic/v1"},
    ),
    # plans: a key of one is refused at the address of another
    KnownProvider(
        "qwen-coding",
        "https://coding-intl.dashscope.aliyuncs.com/v1",
        ("ALIBABA_CODING_PLAN_API_KEY", "MODELSTUDIO_API_KEY"),
        endpoints={"messages": "https://coding-intl.dashscope.aliyuncs.com/apps/anthropic/v1"},
    ),
    KnownProvider(
        "qwen-tokens",
        f"{_QWEN_TOKENS}/compatible-mode/v1",
        ("QWEN_TOKEN_PLAN_API_KEY", "ALIBABA_TOKEN_PLAN_API_KEY"),
        endpoints={"messages": f"{_QWEN_TOKENS}/apps/anthropic/v1"},
        speaks=("chat", "responses"),
    ),
    KnownProvider(
        "qwen-tokens-cn",
        f"{_QWEN_TOKENS_CN}/compatible-mode/v1",
        ("QWEN_TOKEN_PLAN_CN_API_KEY",),
        endpoints={"messages": f"{_QWEN_TOKENS_CN}/apps/anthropic/v1"},
        speaks=("chat", "responses"),
    ),
    KnownProvider(
        "mimo",
        "https://api.xiaomimimo.com",
        ("XIAOMI_API_KEY", "MIMO_API_KEY"),
        ("mimo-*", "mimo.v[0-9]*", "mimov[0-9]*", "xiaomi-mimo*"),
        endpoints={"messages": "https://api.xiaomimimo.com/anthropic/v1"},
        aliases=("xiaomi-mimo",),
    ),
    *(
        KnownProvider(
            f"mimo-tokens-{place}",
            f"https://token-plan-{place}.xiaomimimo.com",
            (f"XIAOMI_TOKEN_PLAN_{place.upper()}_API_KEY",),
            endpoints={"messages": f"https://token-plan-{place}.xiaomimimo.com/anthropic/v1"},
        )
        for place in ("cn", "ams", "sgp")
    ),
    KnownProvider(
        "hunyuan", "https://api.hunyuan.cloud.tencent.com", ("HUNYUAN_API_KEY",), ("hunyuan-*",)
    ),
    KnownProvider("stepfun", "https://api.stepfun.com", ("STEPFUN_API_KEY",), ("step-*",)),
    KnownProvider("stepfun-plan", "https://api.stepfun.ai/step_plan/v1", ("STEPFUN_API_KEY",)),
    KnownProvider(
        "mistral",
        "https://api.mistral.ai",
        ("MISTRAL_API_KEY",),
        ("mistral-*", "magistral-*", "ministral-*", "codestral-*", "devstral-*"),
    ),
    KnownProvider(
        "doubao",
        "https://ark.cn-beijing.volces.com/api/v3",
        ("ARK_API_KEY", "VOLCENGINE_API_KEY", "DOUBAO_API_KEY"),
        ("doubao-*",),
        endpoints={"messages": "https://ark.cn-beijing.volces.com/api/compatible/v1"},  # unproven
        speaks=("chat", "responses"),
        aliases=("volcengine", "ark"),
    ),
    KnownProvider(
        "doubao-coding", "https://ark.cn-beijing.volces.com/api/coding/v3", ("ARK_API_KEY",)
    ),
    KnownProvider(
        "longcat",
        "https://api.longcat.chat/openai/v1",
        ("LONGCAT_API_KEY",),
        ("LongCat-*",),
        endpoints={"messages": "https://api.longcat.chat/anthropic/v1"},
    ),
    KnownProvider(
        "qianfan",
        "https://qianfan.baidubce.com/v2",
        ("QIANFAN_API_KEY", "QIANFAN_TOKEN"),
        ("ernie-*",),
        policy="generic",
    ),
    KnownProvider(
        "meta", "https://api.meta.ai/v1", ("META_API_KEY",), ("muse-*",), speaks=("responses",)
    ),
    KnownProvider(
        "perplexity",
        "https://api.perplexity.ai",
        ("PERPLEXITY_API_KEY", "PPLX_API_KEY"),
        ("sonar", "sonar-*"),
        endpoints={"responses": "https://api.perplexity.ai/v1"},
        bare=("chat", ""),
    ),
    KnownProvider(
        "inception",
        "https://api.inceptionlabs.ai/v1",
        ("INCEPTION_API_KEY",),
        ("mercury*",),
        policy="generic",
    ),
    KnownProvider(
        "ant-ling",
        "https://api.ant-ling.com/v1",
        ("ANT_LING_API_KEY",),
        ("ling-*", "ring-*"),
        policy="generic",
    ),
    # -- clouds that host several labs' models, with models' names of their own ------------------
    KnownProvider(
        "bedrock",
        f"{_BEDROCK}/openai/v1",
        ("AWS_BEARER_TOKEN_BEDROCK",),
        ("anthropic.*", "*.anthropic.claude-*", "openai.gpt-*", "*.openai.gpt-*"),
        host=True,
        endpoints={"messages": f"{_BEDROCK}/anthropic/v1"},
        speaks=("responses", "chat"),
    ),
    # GPT from 5.4 on stands under a path of its own, and speaks nothing but Responses
    KnownProvider(
        "bedrock-mantle",
        f"{_MANTLE}/v1",
        ("AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_AWS_API_KEY"),
        host=True,
        endpoints={
            "responses": f"{_MANTLE}/openai/v1",
            "messages": f"{_MANTLE}/anthropic/v1",
        },
    ),
    KnownProvider(
        "anthropic-aws",
        f"https://aws-external-anthropic.{_AWS_REGION}.api.aws",
        ("ANTHROPIC_AWS_API_KEY",),
        host=True,
        speaks=("messages",),
    ),
    KnownProvider(
        "anthropic-gcp",
        "https://claude.googleapis.com/v1/projects/{ANTHROPIC_GOOGLE_CLOUD_PROJECT}/locations/"
        "{ANTHROPIC_GOOGLE_CLOUD_LOCATION=global}/workspaces/"
        "{ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID|ANTHROPIC_GOOGLE_CLOUD_WORKSPACE}/invoke",
        host=True,
        speaks=("messages",),
    ),
    KnownProvider(
        "vertex",
        "https://aiplatform.googleapis.com/v1/publishers/google",
        ("GOOGLE_CLOUD_API_KEY",),
        host=True,
        speaks=("gemini",),
        bare=("gemini", ""),
    ),
    KnownProvider(
        "azure",
        f"{_AZURE}/openai/v1",
        ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "ANTHROPIC_FOUNDRY_API_KEY"),
        host=True,
        endpoints={"messages": f"{_AZURE}/anthropic/v1"},
        speaks=("responses", "chat"),
        aliases=("foundry",),
    ),
    # -- routers and hosts -------------------------------------------------------------------
    KnownProvider(
        "openrouter",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        (OWNED,),
        host=True,
        speaks=("chat", "responses", "messages"),
    ),
    KnownProvider(
        "groq",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        ("groq/*", "openai/gpt-oss-*", "llama-3.*", OWNED),
        host=True,
    ),
    KnownProvider(
        "cerebras",
        "https://api.cerebras.ai",
        ("CEREBRAS_API_KEY",),
        ("gpt-oss-*", "zai-glm-*", "qwen-3-*", "llama3.1-*"),
        host=True,
    ),
    KnownProvider(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        ("FIREWORKS_API_KEY",),
        ("accounts/*", OWNED),
        host=True,
    ),
    KnownProvider(
        "together",
        "https://api.together.ai/v1",
        ("TOGETHER_API_KEY",),
        ("deepseek-ai/*", "zai-org/*", "togethercomputer/*", OWNED),
        host=True,
    ),
    KnownProvider(
        "siliconflow",
        "https://api.siliconflow.com",
        ("SILICONFLOW_API_KEY",),
        ("Pro/*", "deepseek-ai/*", "zai-org/*", OWNED),
        host=True,
    ),
    KnownProvider(
        "nebius",
        "https://api.tokenfactory.nebius.com/v1",
        ("NEBIUS_API_KEY",),
        (OWNED,),
        host=True,
    ),
    KnownProvider(
        "deepinfra",
        "https://api.deepinfra.com/v1/openai",
        ("DEEPINFRA_API_KEY", "DEEPINFRA_TOKEN"),
        (OWNED,),
        host=True,
        bare=("chat", ""),
    ),
    KnownProvider(
        "sambanova",
        "https://api.sambanova.ai/v1",
        ("SAMBANOVA_API_KEY",),
        ("Meta-Llama-*", "Llama-4-*"),
        host=True,
    ),
    # their models have the names that their labs gave them: a client says `/u/opencode-go`
    *(
        KnownProvider(
            name,
            f"https://opencode.ai/inference{plan}/openai/v1",
            ("OPENCODE_API_KEY",),
            host=True,
            endpoints={
                "messages": f"https://opencode.ai/inference{plan}/anthropic/v1",
                "gemini": f"https://opencode.ai/inference{plan}/google/v1beta",
            },
            speaks=("chat", "responses"),
        )
        for name, plan in (("opencode-go", "/go"), ("opencode", ""))
    ),
    _host(
        "ollama-cloud",
        "https://ollama.com/v1",
        "OLLAMA_API_KEY",
        speaks=("chat", "responses", "messages"),
    ),
    _host("baseten", "https://inference.baseten.co/v1", "BASETEN_API_KEY"),
    _host("nvidia", "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
    _host(
        "novita",
        "https://api.novita.ai/openai/v1",
        "NOVITA_API_KEY",
        endpoints={"messages": "https://api.novita.ai/anthropic/v1"},
    ),
    _host(
        "huggingface", "https://router.huggingface.co/v1", "HF_TOKEN", speaks=("chat", "responses")
    ),
    _host(
        "vercel",
        "https://ai-gateway.vercel.sh/v1",
        "AI_GATEWAY_API_KEY",
        "VERCEL_OIDC_TOKEN",
        speaks=("chat", "responses", "messages"),
    ),
    _host(
        "cloudflare",
        f"{_CLOUDFLARE}/compat",
        "CLOUDFLARE_API_KEY",
        "CLOUDFLARE_API_TOKEN",
        endpoints={
            "responses": f"{_CLOUDFLARE}/openai",
            "messages": f"{_CLOUDFLARE}/anthropic/v1",
        },
        bare=("chat", ""),
    ),
    _host(
        "workers-ai",
        "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1",
        "CLOUDFLARE_API_KEY",
        "CLOUDFLARE_API_TOKEN",
        policy="generic",
    ),
    _host("github-models", "https://models.github.ai/inference", "GITHUB_TOKEN", bare=("chat", "")),
    _host("chutes", "https://llm.chutes.ai/v1", "CHUTES_API_KEY"),
    _host(
        "tencent",
        "https://tokenhub.tencentmaas.com/v1",
        "TENCENT_TOKENHUB_API_KEY",
        speaks=("chat", "responses", "messages"),
    ),
    _host(
        "tencent-intl",
        "https://tokenhub-intl.tencentcloudmaas.com/v1",
        "TENCENT_TOKENHUB_API_KEY",
        speaks=("chat", "responses", "messages"),
    ),
    _host(
        "tencent-coding",
        "https://api.lkeap.cloud.tencent.com/coding/v3",
        "TENCENT_CODING_PLAN_API_KEY",
    ),
    _host(
        "upstage",
        "https://api.upstage.ai/v1/solar",
        "UPSTAGE_API_KEY",
        policy="generic",
        bare=("chat", ""),
    ),
    # nothing is known of these but where they are: what came goes back, under the key it came
    *(
        _host(name, url, key, policy="generic")
        for name, url, key in (
            ("venice", "https://api.venice.ai/api/v1", "VENICE_API_KEY"),
            ("poe", "https://api.poe.com/v1", "POE_API_KEY"),
            ("scaleway", "https://api.scaleway.ai/v1", "SCALEWAY_API_KEY"),
            ("ovhcloud", "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", "OVHCLOUD_API_KEY"),
            ("nano-gpt", "https://nano-gpt.com/api/v1", "NANO_GPT_API_KEY"),
            ("requesty", "https://router.requesty.ai/v1", "REQUESTY_API_KEY"),
            ("llmgateway", "https://api.llmgateway.io/v1", "LLMGATEWAY_API_KEY"),
            ("friendli", "https://api.friendli.ai/serverless/v1", "FRIENDLI_TOKEN"),
            ("wandb", "https://api.inference.wandb.ai/v1", "WANDB_API_KEY"),
            ("synthetic", "https://api.synthetic.new/openai/v1", "SYNTHETIC_API_KEY"),
            ("modelscope", "https://api-inference.modelscope.cn/v1", "MODELSCOPE_API_KEY"),
            ("zenmux", "https://zenmux.ai/api/v1", "ZENMUX_API_KEY"),
            ("tinfoil", "https://inference.tinfoil.sh/v1", "TINFOIL_API_KEY"),
            ("nearai", "https://cloud-api.near.ai/v1", "NEARAI_API_KEY"),
            ("digitalocean", "https://inference.do-ai.run/v1", "DIGITALOCEAN_ACCESS_TOKEN"),
        )
    ),
    # -- by the client's own credential, or without any --------------------------------------
    KnownProvider(
        "codex",
        "https://chatgpt.com/backend-api/codex",
        websockets=True,
        speaks=("responses",),
        bare=("responses", ""),
    ),
    KnownProvider(
        "copilot",
        "https://api.githubcopilot.com",
        speaks=("chat", "responses", "messages"),
        bare=("chat", "responses", ""),
    ),
    KnownProvider(
        "ollama",
        "http://127.0.0.1:11434",
        policy="ollama",
        local=True,
        speaks=("chat", "responses", "messages"),
    ),
    KnownProvider(
        "lmstudio",
        "http://127.0.0.1:1234",
        policy="lmstudio",
        local=True,
        speaks=("chat", "responses", "messages"),
    ),
    KnownProvider(SIMULATED, SCHEME, models=("sim/*",), policy="generic"),
)
"""In order of precedence where two claim the same model."""
