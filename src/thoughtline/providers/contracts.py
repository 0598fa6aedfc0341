"""The policy table. One row per contract; first match wins, so narrower model families come first.

A row says what differs from the defaults of `Policy`: recommended, for all outputs.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache, partial

from msgspec import Struct

from thoughtline.log.capabilities import Capabilities, EffortStyle
from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Need, Scope

STRICT = frozenset({"provider", "endpoint", "account", "model"})
"""The default guard for anything sealed."""
COMPANY = frozenset({"provider", "company"})
"""The default guard for a plain thought: its endpoint, or another known host of one company."""


class Policy(Struct, frozen=True, kw_only=True):
    """One row: what one endpoint demands of one dialect and model family."""

    name: str
    dialect: str
    models: tuple[str, ...] = ("*",)  # patterns, matched against the lower-cased model name
    need: Need = Need.RECOMMENDED
    scope: Scope = Scope.ALL
    beyond: Need = Need.RECOMMENDED  # what holds for outputs outside the scope
    demands_all: bool = False  # required also of outputs that were made without a thought
    with_tools: bool = False  # the need holds only while the request declares tools
    reads: tuple[Carrier, ...] = ()  # what the target understands, the preferred one first
    copies: bool = False  # send a plain thought under every key it reads, all equal
    every_call: bool = False  # a thought before each of parallel calls, not only the first
    binds: frozenset[str] = STRICT  # which fields of Origin a sealed thought is valid for
    plain: frozenset[str] = COMPANY  # the same for a plain one
    signed: bool = False  # it refuses a thought without a signature
    prefix: bool = False  # a sealed thought is also bound to everything before it
    lost: str = ""  # JSON text accepted in place of a lost thought; empty: nothing is
    off: tuple[str, str] | None = None  # member and JSON value that switch thinking off
    thinks: bool = True  # thinking is on unless the request says otherwise
    stateless: bool = False  # set `store: false` and ask for encrypted content
    phases: bool = False  # wants each message with what it was for: `phase`
    remembers: bool = False  # keeps responses for clients who ask for that (`store: true`)
    takes: Capabilities = Capabilities()  # beside thoughts, for requests that are translated
    source: str = ""  # where this is documented or was seen


# -- what rows have in common --------------------------------------------------------------------

REQUIRED, SOFT, IGNORED = Need.REQUIRED, Need.SOFT, Need.IGNORED
FORBIDDEN, NONE = Need.FORBIDDEN, Need.NONE
LOOP, CALLS = Scope.LOOP, Scope.CALLS

RC, R, RD = Carrier.REASONING_CONTENT, Carrier.REASONING, Carrier.REASONING_DETAILS
THINK = Carrier.THINK
ANY_TEXT = (RC, R, RD, THINK, Carrier.CHUNK, Carrier.REASONING_TEXT)
GEMINI_PARTS = (Carrier.SIGNATURE, Carrier.PART)

THINKING_OFF: Mapping[str, tuple[str, str]] = {
    "chat": ("thinking", '{"type":"disabled"}'),
    "messages": ("thinking", '{"type":"disabled"}'),
    "responses": ("reasoning", '{"effort":"none"}'),
}
"""By dialect: the member and the JSON value that most providers switch thinking off by."""
BYPASS = '"skip_thought_signature_validator"'
EMPTY_BLOCK = '{"type":"thinking","thinking":"","signature":""}'

SWITCH = Capabilities(effort_style=EffortStyle.SWITCH)
ALWAYS_ON_SWITCH = Capabilities(effort_style=EffortStyle.SWITCH, thinking_off=False)
DEEPSEEK = Capabilities(effort_style=EffortStyle.SWITCH, efforts=("high", "max"))
ROUTER = Capabilities(
    effort_style=EffortStyle.ROUTER, efforts=("none", "minimal", "low", "medium", "high", "xhigh")
)
KIMI_K3 = Capabilities(efforts=("low", "high", "max"), thinking_off=False)
OPENAI = Capabilities(developer_role=True, strict_tools=True)
ADAPTIVE = Capabilities(effort_style=EffortStyle.ADAPTIVE, thinking_off=False)
ASKED = Capabilities(effort_style=EffortStyle.ADAPTIVE, late_system=False)
MANUAL = Capabilities(effort_style=EffortStyle.BUDGET, late_system=False)

ROUTED = COMPANY | {"model"}
"""Behind a router, another model is another provider: it may refuse even a plain thought."""

chat = partial(Policy, dialect="chat")
responses = partial(Policy, dialect="responses", reads=(Carrier.ITEM,))
messages = partial(Policy, dialect="messages", reads=(Carrier.BLOCK,))

sealed_items = partial(responses, scope=LOOP, stateless=True)
openai_items = partial(sealed_items, phases=True)
with_calls = partial(chat, need=REQUIRED, scope=CALLS, reads=(RC,), lost='""')
deepseek_chat = partial(
    chat,
    name="deepseek",
    need=REQUIRED,
    with_tools=True,
    beyond=IGNORED,
    reads=(RC,),
    off=THINKING_OFF["chat"],
    takes=DEEPSEEK,
)
deepseek_r1 = partial(
    chat, need=FORBIDDEN, source="api-docs.deepseek.com (retired reasoning-model page)"
)

BOUND = ("claude-fable-5-1*", "claude-opus-5-5*", "claude-sonnet-5-5*", "claude-haiku-5-5*")
ADAPTING = ("claude-opus-4-[678]*", "claude-sonnet-4-6*")
ALWAYS_ON = ("claude-fable-5*", "claude-mythos-5*", "claude-opus-5*", "claude-sonnet-5*")


def _claude(name: str, before: str = "") -> tuple[Policy, ...]:
    """Return Claude's rows at one of its hosts; `before`: a prefix of its model names there."""
    row = partial(messages, name=name, scope=LOOP, signed=True)  # oh-my-pi#10486, bifrost#6942
    bound, always_on = (tuple(before + model for model in models) for models in (BOUND, ALWAYS_ON))
    docs = "platform.claude.com/docs/en/build-with-claude"
    optional = partial(row, need=REQUIRED, off=THINKING_OFF["messages"], thinks=False)
    return (
        row(models=bound, prefix=True, takes=ADAPTIVE, source=f"{docs}/preserved-thinking"),
        row(models=always_on, takes=ADAPTIVE, source=f"{docs}/thinking-troubleshooting"),
        optional(
            models=tuple(before + model for model in ADAPTING),
            takes=ASKED,
            source=f"{docs}/thinking-troubleshooting",
        ),
        optional(
            models=(before + "claude-*",),
            takes=MANUAL,
            source=f"{docs}/thinking; opencode#3077",
        ),
    )


def _gemini(dialect: str, reads: tuple[Carrier, ...], lost: str) -> tuple[Policy, ...]:
    """Gemini in one of its dialects: from 3 on, the first call must have its signature."""
    source = "ai.google.dev/gemini-api/docs/thought-signatures; pydantic-ai#3881"
    row = partial(
        Policy, name="gemini", dialect=dialect, scope=Scope.FIRST_CALL, reads=reads, source=source
    )
    return (
        row(
            models=("*gemini-2*", "*gemini-1*"),
            takes=Capabilities(effort_style=EffortStyle.BUDGET, media_in_results=False),
        ),
        row(need=REQUIRED, lost=lost),
    )


# -- the rows ------------------------------------------------------------------------------------

ROWS: tuple[Policy, ...] = (
    # -- OpenAI and those who speak Responses ----------------------------------------------------
    openai_items(
        name="openai",
        models=("gpt-5.[1-9]*",),
        remembers=True,
        takes=Capabilities(thinks_at="medium"),
        source="developers.openai.com/api/docs/guides/reasoning (their default may be `none`)",
    ),
    openai_items(
        name="openai",
        remembers=True,
        source="developers.openai.com/api/docs/guides/reasoning; litellm#27702",
    ),
    chat(
        name="openai",
        need=NONE,
        takes=OPENAI,
        source="developers.openai.com/api/docs/guides/reasoning",
    ),
    openai_items(name="codex", source="codex#26173; sub2api#3038"),
    openai_items(
        name="azure",
        remembers=True,
        source="codex#3528; pi#5524; vercel/ai#12689; hermes-agent#63446",
    ),
    chat(name="azure", need=NONE, takes=OPENAI, source="as openai"),
    sealed_items(
        name="xai",
        scope=Scope.ALL,
        binds=STRICT - {"model"},
        remembers=True,
        source="docs.x.ai; sub2api#4535",
    ),
    chat(name="xai", reads=(RC,), source="docs.x.ai"),
    # -- Anthropic and those who host Claude -----------------------------------------------------
    *_claude("anthropic"),
    *_claude("bedrock", "*"),  # a region and a vendor stand before the name
    messages(
        name="bedrock",
        models=("*nova*", "*minimax*"),
        need=FORBIDDEN,
        reads=(),
        source="oh-my-pi#9086; bifrost#6942",
    ),
    # -- Google ----------------------------------------------------------------------------------
    *_gemini("gemini", GEMINI_PARTS, BYPASS),
    *_gemini("chat", (Carrier.EXTRA_CONTENT,), f'{{"google":{{"thought_signature":{BYPASS}}}}}'),
    # -- DeepSeek: three endpoints, four contracts -----------------------------------------------
    deepseek_r1(name="deepseek", models=("deepseek-r1*", "deepseek-reasoner-r1*")),
    deepseek_r1(name="deepseek-r1"),
    with_calls(
        name="deepseek",
        models=("deepseek-v3*",),
        off=THINKING_OFF["chat"],
        source="continue#10193; api-docs.deepseek.com/guides/thinking_mode",
    ),
    deepseek_chat(
        models=("*flash*", "deepseek-chat*", "deepseek-reasoner*"),
        lost='""',
        source="api-docs.deepseek.com/guides/thinking_mode#tool-calls",
    ),
    deepseek_chat(
        lost='" "',
        source="api-docs.deepseek.com/guides/thinking_mode#tool-calls; hermes-agent#17341",
    ),
    messages(
        name="deepseek",
        need=REQUIRED,
        scope=CALLS,
        binds=COMPANY,
        lost=EMPTY_BLOCK,
        off=THINKING_OFF["messages"],
        source="9router#2397; Reasonix#8902",
    ),
    responses(
        name="deepseek",
        need=REQUIRED,
        with_tools=True,
        beyond=IGNORED,
        binds=COMPANY,
        every_call=True,
        off=THINKING_OFF["responses"],
        source="api-docs.deepseek.com/guides/responses_api; rikkahub#1690",
    ),
    # -- Moonshot --------------------------------------------------------------------------------
    with_calls(
        name="kimi",
        models=("*k3*",),
        beyond=SOFT,
        takes=KIMI_K3,
        source="platform.moonshot.cn use-kimi-k2-thinking-model; deer-flow#3043",
    ),
    with_calls(
        name="kimi",
        models=("*k2.7*", "*k2-thinking*"),
        beyond=SOFT,
        takes=ALWAYS_ON_SWITCH,
        source="platform.moonshot.cn use-kimi-k2-thinking-model; deer-flow#3043",
    ),
    with_calls(
        name="kimi",
        off=THINKING_OFF["chat"],
        takes=SWITCH,
        source="kimi-agent-sdk#169; obsidian-yolo#243",
    ),
    messages(name="kimi", binds=COMPANY, source="CLIProxyAPI kimi_validation.go"),
    # -- other labs ------------------------------------------------------------------------------
    with_calls(
        name="mimo",
        off=THINKING_OFF["chat"],
        takes=SWITCH,
        source="platform.xiaomimimo.com passing-back-reasoning_content; forgecode#3347",
    ),
    chat(
        name="glm",
        models=("*glm-5.2*",),
        need=SOFT,
        scope=LOOP,
        reads=(RC,),
        off=THINKING_OFF["chat"],
        takes=Capabilities(effort_style=EffortStyle.SWITCH, efforts=("high", "max")),
        source="docs.z.ai/guides/capabilities/thinking-mode",
    ),
    chat(
        name="glm",
        need=SOFT,
        scope=LOOP,
        reads=(RC,),
        off=THINKING_OFF["chat"],
        takes=SWITCH,
        source="docs.z.ai/guides/capabilities/thinking-mode",
    ),
    chat(
        name="minimax",
        need=SOFT,
        reads=(THINK, RD),
        takes=Capabilities(late_system=False, thinking_off=False),
        source="platform.minimax.io text-openai-api",
    ),
    chat(  # read only with preserve_thinking; otherwise accepted and ignored
        name="qwen",
        reads=(RC,),
        off=("enable_thinking", "false"),
        takes=Capabilities(effort_style=EffortStyle.ENABLE, late_system=False),
        source="help.aliyun.com deep-thinking",
    ),
    chat(
        name="hunyuan",
        need=SOFT,
        scope=LOOP,
        reads=(RC,),
        takes=Capabilities(efforts=("low", "high")),
        source="cloud.tencent.com/document/product/1823/130930",
    ),
    chat(name="stepfun", reads=(R,), source="platform.stepfun.com/docs/guide/reasoning"),
    chat(
        name="mistral",
        reads=(Carrier.CHUNK,),
        takes=Capabilities(efforts=("none", "high"), thinks_at="high", seed=False),
        source="docs.mistral.ai/capabilities/reasoning",
    ),
    # -- routers and hosts -----------------------------------------------------------------------
    chat(
        name="openrouter",
        models=("deepseek/*",),
        need=REQUIRED,
        with_tools=True,
        reads=(RC, RD),
        copies=True,
        lost='" "',
        plain=ROUTED,
        takes=ROUTER,
        source="inspect_ai#4079; oh-my-pi#1445",
    ),
    chat(
        name="openrouter",
        need=SOFT,
        reads=(RD, R),
        plain=ROUTED,
        takes=ROUTER,
        source="openrouter.ai/docs/use-cases/reasoning-tokens",
    ),
    chat(name="groq", reads=(R,), source="freellmapi#1070; Kai#265"),
    chat(name="cerebras", reads=(R,), source="inference-docs.cerebras.ai; qwen-code#11045"),
    chat(name="fireworks", reads=(RC,), source="docs.fireworks.ai/guides/reasoning"),
    chat(name="together", reads=(RC, R), source="docs.together.ai"),
    with_calls(name="siliconflow", models=("*kimi*",), source="QwenPaw#433"),
    chat(name="siliconflow", reads=(RC,), source="QwenPaw#433"),
    chat(
        name="nebius",
        reads=(RC,),
        plain=ROUTED,
        source="nebius/api#211; models.dev providers/nebius",
    ),
    chat(
        name="deepinfra", reads=(RC,), plain=ROUTED, source="oh-my-pi#9522 (the host's own words)"
    ),
    chat(
        name="sambanova",
        reads=(THINK, RC, R),
        plain=ROUTED,
        source="docs.sambanova.ai/docs/en/build/reasoning",
    ),
    deepseek_chat(
        name="opencode-go",
        models=("deepseek-*",),
        lost='" "',
        plain=ROUTED,
        source="opencode#28890, #27350",
    ),
    with_calls(
        name="opencode-go", models=("*kimi*", "*mimo*"), plain=ROUTED, source="opencode#28542"
    ),
    chat(
        name="opencode-go",
        reads=(RC, RD, THINK),
        plain=ROUTED,
        source="docs.getbifrost.ai opencode",
    ),
    messages(name="opencode-go", plain=ROUTED, source="oh-my-pi#10486; opencode.ai/docs/go"),
    # -- engines ---------------------------------------------------------------------------------
    chat(name="vllm", reads=(R, RC), copies=True, source="vllm#27752, #38488, #42664"),
    chat(name="sglang", reads=(RC,), source="docs.sglang.io"),
    chat(name="llamacpp", reads=(RC,), source="llama.cpp#18994"),
    chat(name="ollama", reads=(R,), source="ollama#18536"),
    chat(name="lmstudio", reads=(THINK, RC, R), source="lmstudio-bug-tracker#1569"),
    chat(
        name="copilot",
        reads=(Carrier.REASONING_TEXT, Carrier.REASONING_OPAQUE),
        source="opencode#8900; vscode-copilot-chat#2178",
    ),
    responses(name="copilot"),
    messages(name="copilot"),
    # -- everybody else: send back what came, under the key it came, and demand nothing ----------
    chat(name="generic", reads=(*ANY_TEXT, Carrier.EXTRA_CONTENT, Carrier.REASONING_OPAQUE)),
    responses(name="generic"),
    messages(name="generic"),
    Policy(name="generic", dialect="gemini", reads=GEMINI_PARTS),
)


def policy_names() -> list[str]:
    """Return the policy names that a user may write."""
    return sorted({row.name for row in ROWS})


def preferred_dialect(name: str) -> str:
    """Return the dialect to use with a provider where none is configured: its first row's."""
    return next((row.dialect for row in ROWS if row.name == name), "chat")


@lru_cache(maxsize=1024)
def find_policy(name: str, dialect: str, model: str) -> Policy:
    """Return the row for an endpoint, dialect and model; the generic one when there is none."""
    wanted = model.lower()
    fallback: Policy | None = None
    for row in ROWS:
        if row.dialect != dialect:
            continue
        if row.name == name and any(fnmatchcase(wanted, pattern) for pattern in row.models):
            return row
        if row.name == "generic":
            fallback = row
    if fallback is None:
        raise KeyError(f"no policy for dialect {dialect!r}")
    return fallback
