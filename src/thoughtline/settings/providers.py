"""The providers that are known by name, so that nothing has to be configured: a table.

A row says where a provider is, in which variables people keep its key, and which model names are
its own. The policy is not here: it is inferred from the host. Labs own their models' names; hosts
serve everybody's (`owner/model`), so theirs count only when a key for them was found: a client's
own credential is not sent to a host on a guess.
"""

from msgspec import Struct

SIMULATED = "sim"
SCHEME = "sim://"
"""The base URL of the built-in simulated provider: no network, served in the process."""

OWNED = "*/*"


class Provider(Struct, frozen=True, kw_only=True):
    """One row."""

    name: str
    base_url: str
    keys: tuple[str, ...] = ()  # variables, the first one that is set counts
    models: tuple[str, ...] = ()
    host: bool = False  # serves other people's models: patterns count only with a key
    local: bool = False  # on this machine: offered to clients on this machine only
    websockets: bool = False
    policy: str = ""  # where the host does not say it
    endpoints: dict[str, str] = {}  # dialects that are spoken elsewhere on the host


PROVIDERS: tuple[Provider, ...] = (
    # -- labs --------------------------------------------------------------------------------
    Provider(
        name="openai",
        base_url="https://api.openai.com",
        keys=("OPENAI_API_KEY",),
        models=("gpt-*", "chatgpt-*", "codex-*", "computer-use-*", "o1*", "o3*", "o4*"),
        websockets=True,
    ),
    Provider(
        name="anthropic",
        base_url="https://api.anthropic.com",
        keys=("ANTHROPIC_API_KEY",),
        models=("claude-*",),
    ),
    Provider(
        name="gemini",
        base_url="https://generativelanguage.googleapis.com",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        models=("gemini-*", "models/gemini-*", "gemma-*"),
        endpoints={"chat": "https://generativelanguage.googleapis.com/v1beta/openai"},
    ),
    Provider(
        name="deepseek",
        base_url="https://api.deepseek.com",
        keys=("DEEPSEEK_API_KEY",),
        models=("deepseek-*",),
        endpoints={"messages": "https://api.deepseek.com/anthropic/v1"},
    ),
    Provider(
        name="kimi",
        base_url="https://api.moonshot.ai",
        keys=("MOONSHOT_API_KEY",),
        models=("kimi-*", "moonshot-*"),
        endpoints={"messages": "https://api.moonshot.ai/anthropic/v1"},
    ),
    Provider(  # a platform of its own, with keys of its own
        name="kimi-coding",
        base_url="https://api.kimi.com/coding",
        keys=("KIMI_API_KEY",),
        models=("kimi-for-coding*", "kimi-*"),
    ),
    Provider(
        name="xai",
        base_url="https://api.x.ai",
        keys=("XAI_API_KEY",),
        models=("grok-*",),
        websockets=True,
    ),
    Provider(
        name="glm",
        base_url="https://api.z.ai/api/paas/v4",
        keys=("ZAI_API_KEY", "ZHIPU_API_KEY"),
        models=("glm-*",),
        endpoints={"messages": "https://api.z.ai/api/anthropic/v1"},
    ),
    Provider(
        name="minimax",
        base_url="https://api.minimax.io",
        keys=("MINIMAX_API_KEY",),
        models=("MiniMax-*", "minimax-*"),
        endpoints={"messages": "https://api.minimax.io/anthropic/v1"},
    ),
    Provider(
        name="qwen",
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        keys=("DASHSCOPE_API_KEY",),
        models=("qwen-*", "qwen[0-9]*", "qwq-*", "qvq-*"),
        endpoints={"messages": "https://dashscope-intl.aliyuncs.com/apps/anthropic/v1"},
    ),
    Provider(
        name="mimo",
        base_url="https://api.xiaomimimo.com",
        keys=("XIAOMI_API_KEY", "MIMO_API_KEY"),
        models=("mimo-*",),
        endpoints={"messages": "https://api.xiaomimimo.com/anthropic/v1"},
    ),
    Provider(
        name="hunyuan",
        base_url="https://api.hunyuan.cloud.tencent.com",
        keys=("HUNYUAN_API_KEY",),
        models=("hunyuan-*",),
    ),
    Provider(
        name="stepfun",
        base_url="https://api.stepfun.com",
        keys=("STEPFUN_API_KEY",),
        models=("step-*",),
    ),
    Provider(
        name="mistral",
        base_url="https://api.mistral.ai",
        keys=("MISTRAL_API_KEY",),
        models=("mistral-*", "magistral-*", "ministral-*", "codestral-*", "devstral-*"),
    ),
    # -- routers and hosts -------------------------------------------------------------------
    Provider(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        keys=("OPENROUTER_API_KEY",),
        models=(OWNED,),
        host=True,
    ),
    Provider(
        name="groq",
        base_url="https://api.groq.com/openai/v1",
        keys=("GROQ_API_KEY",),
        models=("groq/*", "openai/gpt-oss-*", "llama-3.*", OWNED),
        host=True,
    ),
    Provider(
        name="cerebras",
        base_url="https://api.cerebras.ai",
        keys=("CEREBRAS_API_KEY",),
        models=("gpt-oss-*", "zai-glm-*", "qwen-3-*", "llama3.1-*"),
        host=True,
    ),
    Provider(
        name="fireworks",
        base_url="https://api.fireworks.ai/inference/v1",
        keys=("FIREWORKS_API_KEY",),
        models=("accounts/*", OWNED),
        host=True,
    ),
    Provider(
        name="together",
        base_url="https://api.together.xyz",
        keys=("TOGETHER_API_KEY",),
        models=("deepseek-ai/*", "zai-org/*", "togethercomputer/*", OWNED),
        host=True,
    ),
    Provider(
        name="siliconflow",
        base_url="https://api.siliconflow.com",
        keys=("SILICONFLOW_API_KEY",),
        models=("Pro/*", "deepseek-ai/*", "zai-org/*", OWNED),
        host=True,
    ),
    # -- by the client's own credential, or without any --------------------------------------
    Provider(
        name="codex",
        base_url="https://chatgpt.com/backend-api/codex",
        websockets=True,
        endpoints={"responses": "https://chatgpt.com/backend-api/codex"},  # without a version
    ),
    Provider(
        name="copilot",
        base_url="https://api.githubcopilot.com",
        endpoints=dict.fromkeys(("chat", "responses"), "https://api.githubcopilot.com"),
    ),
    Provider(name="ollama", base_url="http://127.0.0.1:11434", policy="ollama", local=True),
    Provider(name="lmstudio", base_url="http://127.0.0.1:1234", policy="lmstudio", local=True),
    Provider(name=SIMULATED, base_url=SCHEME, models=("sim/*",), policy="generic"),
)
"""In order of precedence where two claim the same model."""
