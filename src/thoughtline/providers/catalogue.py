"""The providers that are known by name or by host, so that nothing has to be configured.

A row of `PROVIDERS` says where a provider is, in which variables people keep its key, and which
model names are its own; `HOSTS` says which policy an endpoint's host speaks for. Labs own their
models' names; hosts serve everybody's (`owner/model`), so theirs count only when a key for them
was found: a client's own credential is not sent to a host on a guess.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit

from msgspec import Struct

from thoughtline.providers.contracts import policy_names

SIMULATED = "sim"
SCHEME = "sim://"
"""The base URL of the built-in simulated provider: no network, served in the process."""

OWNED = "*/*"


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

    def owns(self, url: str) -> bool:
        """Whether a URL is at this provider's own host: its key is sent nowhere else."""
        try:
            return urlsplit(url)[:2] == urlsplit(self.base_url)[:2]
        except ValueError:
            return False


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
        ("kimi-for-coding*", "kimi-*"),
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
    KnownProvider(
        "minimax",
        "https://api.minimax.io",
        ("MINIMAX_API_KEY",),
        ("MiniMax-*",),
        endpoints={"messages": "https://api.minimax.io/anthropic/v1"},
    ),
    KnownProvider(
        "qwen",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        ("qwen-*", "qwen[0-9]*", "qwq*", "qvq*"),
        endpoints={"messages": "https://dashscope-intl.aliyuncs.com/apps/anthropic/v1"},
    ),
    KnownProvider(
        "mimo",
        "https://api.xiaomimimo.com",
        ("XIAOMI_API_KEY", "MIMO_API_KEY"),
        ("mimo-*", "mimo.v[0-9]*", "mimov[0-9]*", "xiaomi-mimo*"),
        endpoints={"messages": "https://api.xiaomimimo.com/anthropic/v1"},
        aliases=("xiaomi-mimo",),
    ),
    KnownProvider(
        "hunyuan", "https://api.hunyuan.cloud.tencent.com", ("HUNYUAN_API_KEY",), ("hunyuan-*",)
    ),
    KnownProvider("stepfun", "https://api.stepfun.com", ("STEPFUN_API_KEY",), ("step-*",)),
    KnownProvider(
        "mistral",
        "https://api.mistral.ai",
        ("MISTRAL_API_KEY",),
        ("mistral-*", "magistral-*", "ministral-*", "codestral-*", "devstral-*"),
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
        "https://api.together.xyz",
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
    # its models have the names that their labs gave them: a client says `/u/opencode-go`
    KnownProvider("opencode-go", "https://opencode.ai/zen/go/v1", ("OPENCODE_API_KEY",), host=True),
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
BY_NAME = {provider.name: provider for provider in PROVIDERS}
_ALIASES = {alias: provider.name for provider in PROVIDERS for alias in provider.aliases}


def known_name(name: str) -> str:
    """Return a provider's own name for what people call it, in any case; else the name itself."""
    lowered = name.lower()
    found = _ALIASES.get(lowered, lowered)
    return found if found in BY_NAME else name


def known_provider(name: str) -> KnownProvider | None:
    """Return the provider of this name, in any case, or of one of its other names."""
    return BY_NAME.get(known_name(name))


def asks_for_key(base_url: str) -> bool:
    """Whether what is there asks for a key, as far as is known."""
    return any(p.owns(base_url) for p in PROVIDERS if not p.local and p.name != SIMULATED)


_VERSIONED = frozenset(provider.base_url for provider in PROVIDERS if not provider.unversioned)
_BARE = {provider.base_url: provider.bare for provider in PROVIDERS if provider.bare}


def wants_version(base_url: str) -> bool:
    """Whether paths have to begin with a version there, as far as is known."""
    return base_url.rstrip("/") in _VERSIONED or base_url.startswith(SCHEME)


def refuses_version(base_url: str, dialect: str) -> bool:
    """Whether paths of a dialect must not have a version there, as far as is known."""
    return dialect in _BARE.get(base_url.rstrip("/"), ())


@lru_cache(maxsize=4096)
def matches_model(pattern: str, model: str) -> bool:
    """Whether a pattern of model names matches, without regard to case.

    `owner/model` names a model at a host: a pattern that begins with a lab's own name and has no
    slash does not match it, or `deepseek-*` would send `deepseek-ai/DeepSeek-R1` to DeepSeek.
    """
    if "/" in model and "/" not in pattern and pattern[:1] not in ("*", "?", "["):
        return False
    return fnmatchcase(model.lower(), pattern.lower())


HOSTS: tuple[tuple[str, str], ...] = (
    ("api.openai.com", "openai"),
    ("chatgpt.com", "codex"),
    ("*.openai.azure.com", "azure"),
    ("*.cognitiveservices.azure.com", "azure"),
    ("*.services.ai.azure.com", "azure"),
    ("api.x.ai", "xai"),
    ("api.anthropic.com", "anthropic"),
    ("bedrock*.amazonaws.com", "bedrock"),
    ("*aiplatform.googleapis.com", "gemini"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("api.deepseek.com", "deepseek"),
    ("api.moonshot.*", "kimi"),
    ("api.kimi.*", "kimi"),
    ("*.xiaomimimo.com", "mimo"),
    ("api.z.ai", "glm"),
    ("open.bigmodel.cn", "glm"),
    ("api.minimax*", "minimax"),
    ("dashscope*.aliyuncs.com", "qwen"),
    ("*.tencentcloudapi.com", "hunyuan"),
    ("*.hunyuan.cloud.tencent.com", "hunyuan"),
    ("api.stepfun.*", "stepfun"),
    ("api.mistral.ai", "mistral"),
    ("openrouter.ai", "openrouter"),
    ("api.groq.com", "groq"),
    ("api.cerebras.ai", "cerebras"),
    ("api.fireworks.ai", "fireworks"),
    ("api.together.*", "together"),
    ("api.siliconflow.*", "siliconflow"),
    ("api.tokenfactory.*nebius.com", "nebius"),
    ("api.studio.nebius.*", "nebius"),
    ("api.deepinfra.com", "deepinfra"),
    ("api.sambanova.ai", "sambanova"),
    ("opencode.ai", "opencode-go"),
    ("api.githubcopilot.com", "copilot"),
    ("*.githubcopilot.com", "copilot"),
)


@lru_cache(maxsize=256)
def infer_policy(url: str, name: str = "") -> str:
    """Return the policy of an endpoint: by host, else by name; `generic` when neither is known.

    A mirror of a provider is mostly named after it.
    """
    host = (urlsplit(url).hostname or "").lower()
    by_host = next((policy for pattern, policy in HOSTS if fnmatchcase(host, pattern)), "generic")
    named = known_name(name.lower())
    return named if by_host == "generic" and named in policy_names() else by_host


_RESOURCES = frozenset({"generic", "azure", "bedrock"})
"""Policies whose hosts do not belong to one company, or each to a customer of its own."""


@lru_cache(maxsize=256)
def same_company(one: str, other: str) -> bool:
    """Whether two URLs are known hosts of one company: `api.moonshot.cn` and `api.moonshot.ai`."""
    policy = infer_policy(one)
    return policy not in _RESOURCES and policy == infer_policy(other)


_CREDENTIAL_DIALECTS = {"anthropic": "messages", "gemini": "gemini"}


def credential_dialect(policy: str) -> str:
    """Return the dialect whose credential header a provider reads beside its API (`/v1/models`).

    Empty for providers that take a bearer token everywhere.
    """
    return _CREDENTIAL_DIALECTS.get(policy, "")
