"""The table. One row per contract; first match wins, so narrower model families come first."""

from fnmatch import fnmatchcase
from functools import lru_cache, partial

from thoughtline.parts import Carrier
from thoughtline.policies.rows import STRICT, Need, Policy, Scope

# -- words that rows are written in --------------------------------------------------------------

chat = partial(Policy, dialect="chat")
responses = partial(Policy, dialect="responses")
messages = partial(Policy, dialect="messages")
gemini = partial(Policy, dialect="gemini")

REQUIRED, SOFT, RECOMMENDED = Need.REQUIRED, Need.SOFT, Need.RECOMMENDED
IGNORED, FORBIDDEN, NONE = Need.IGNORED, Need.FORBIDDEN, Need.NONE
LOOP, CALLS, FIRST_CALL = Scope.LOOP, Scope.CALLS, Scope.FIRST_CALL

RC, R, RD = Carrier.REASONING_CONTENT, Carrier.REASONING, Carrier.REASONING_DETAILS
ITEM, BLOCK = Carrier.ITEM, Carrier.BLOCK
ANY_TEXT = (RC, R, RD, Carrier.THINK, Carrier.CHUNK, Carrier.REASONING_TEXT)

DISABLED = ("thinking", '{"type":"disabled"}')
BYPASS = '"skip_thought_signature_validator"'
EMPTY_BLOCK = '{"type":"thinking","thinking":"","signature":""}'

PROVIDER = frozenset({"provider"})
ROUTED = frozenset({"provider", "model"})
"""Behind a router, another model is another provider: it may refuse even a plain thought."""

BOUND = ("claude-fable-5-1*", "claude-opus-5-5*", "claude-sonnet-5-5*", "claude-haiku-5-5*")
ALWAYS_ON = ("claude-fable-5*", "claude-mythos-5*", "claude-opus-5*", "claude-sonnet-5*")


def _claude(name: str, before: str = "") -> tuple[Policy, ...]:
    """Claude at one of its hosts; `before` is what may stand before a model's name there."""
    row = partial(messages, name=name, scope=LOOP, reads=(BLOCK,))
    bound, always_on = (tuple(before + model for model in models) for models in (BOUND, ALWAYS_ON))
    docs = "platform.claude.com/docs/en/build-with-claude"
    return (
        row(models=bound, need=RECOMMENDED, prefix=True, source=f"{docs}/preserved-thinking"),
        row(models=always_on, need=RECOMMENDED, source=f"{docs}/thinking-troubleshooting"),
        row(
            models=(before + "claude-*",),
            need=REQUIRED,
            off=DISABLED,
            thinks=False,
            source=f"{docs}/thinking; opencode#3077",
        ),
    )


def _gemini(dialect: str, reads: tuple[Carrier, ...], lost: str) -> tuple[Policy, ...]:
    """Gemini in one of its dialects: from 3 on, the first call must have its signature."""
    source = "ai.google.dev/gemini-api/docs/thought-signatures; pydantic-ai#3881"
    row = partial(
        Policy, name="gemini", dialect=dialect, scope=FIRST_CALL, reads=reads, source=source
    )
    return (
        row(models=("*gemini-2*", "*gemini-1*"), need=RECOMMENDED),
        row(need=REQUIRED, lost=lost),
    )


# -- the rows ------------------------------------------------------------------------------------

ROWS: tuple[Policy, ...] = (
    # -- OpenAI and those who speak Responses ----------------------------------------------------
    responses(
        name="openai",
        need=RECOMMENDED,
        scope=LOOP,
        reads=(ITEM,),
        stateless=True,
        remembers=True,
        source="developers.openai.com/api/docs/guides/reasoning; litellm#27702",
    ),
    chat(name="openai", need=NONE, source="developers.openai.com/api/docs/guides/reasoning"),
    responses(
        name="codex",
        need=RECOMMENDED,
        scope=LOOP,
        reads=(ITEM,),
        stateless=True,
        source="codex#26173; sub2api#3038",
    ),
    responses(
        name="azure",
        need=RECOMMENDED,
        scope=LOOP,
        reads=(ITEM,),
        stateless=True,
        remembers=True,
        source="codex#3528; pi#5524; vercel/ai#12689; hermes-agent#63446",
    ),
    chat(name="azure", need=NONE, source="as openai"),
    responses(
        name="xai",
        need=RECOMMENDED,
        reads=(ITEM,),
        binds=STRICT - {"model"},
        stateless=True,
        remembers=True,
        source="docs.x.ai; sub2api#4535",
    ),
    chat(name="xai", need=NONE, source="docs.x.ai"),
    # -- Anthropic and those who host Claude -----------------------------------------------------
    *_claude("anthropic"),
    *_claude("bedrock", "*"),  # a region and a vendor stand before the name
    messages(
        name="bedrock",
        models=("*nova*", "*minimax*"),
        need=FORBIDDEN,
        source="oh-my-pi#9086; bifrost#6942",
    ),
    # -- Google ----------------------------------------------------------------------------------
    *_gemini("gemini", (Carrier.SIGNATURE, Carrier.PART), BYPASS),
    *_gemini("chat", (Carrier.EXTRA_CONTENT,), f'{{"google":{{"thought_signature":{BYPASS}}}}}'),
    # -- DeepSeek: three endpoints, four contracts -----------------------------------------------
    chat(
        name="deepseek",
        models=("deepseek-r1*", "deepseek-reasoner-r1*"),
        need=FORBIDDEN,
        source="api-docs.deepseek.com (retired reasoning-model page)",
    ),
    chat(
        name="deepseek-r1",
        need=FORBIDDEN,
        source="api-docs.deepseek.com (retired reasoning-model page)",
    ),
    chat(
        name="deepseek",
        models=("deepseek-v3*",),
        need=REQUIRED,
        scope=CALLS,
        reads=(RC,),
        lost='""',
        off=DISABLED,
        source="continue#10193; api-docs.deepseek.com/guides/thinking_mode",
    ),
    chat(
        name="deepseek",
        models=("*flash*",),
        need=REQUIRED,
        with_tools=True,
        beyond=IGNORED,
        reads=(RC,),
        lost='""',
        off=DISABLED,
        source="api-docs.deepseek.com/guides/thinking_mode#tool-calls",
    ),
    chat(
        name="deepseek",
        need=REQUIRED,
        with_tools=True,
        beyond=IGNORED,
        reads=(RC,),
        lost='" "',
        off=DISABLED,
        source="api-docs.deepseek.com/guides/thinking_mode#tool-calls; hermes-agent#17341",
    ),
    messages(
        name="deepseek",
        need=REQUIRED,
        scope=CALLS,
        reads=(BLOCK,),
        binds=PROVIDER,
        lost=EMPTY_BLOCK,
        off=DISABLED,
        source="9router#2397; Reasonix#8902",
    ),
    responses(
        name="deepseek",
        need=REQUIRED,
        with_tools=True,
        beyond=IGNORED,
        reads=(ITEM,),
        binds=PROVIDER,
        every_call=True,
        off=("reasoning", '{"effort":"none"}'),
        source="api-docs.deepseek.com/guides/responses_api; rikkahub#1690",
    ),
    # -- Moonshot --------------------------------------------------------------------------------
    chat(
        name="kimi",
        models=("*k2.7*", "*k3*", "*k2-thinking*"),
        need=REQUIRED,
        scope=CALLS,
        beyond=SOFT,
        reads=(RC,),
        lost='""',
        source="platform.moonshot.cn use-kimi-k2-thinking-model; deer-flow#3043",
    ),
    chat(
        name="kimi",
        need=REQUIRED,
        scope=CALLS,
        reads=(RC,),
        lost='""',
        off=DISABLED,
        source="kimi-agent-sdk#169; obsidian-yolo#243",
    ),
    messages(
        name="kimi",
        need=RECOMMENDED,
        reads=(BLOCK,),
        binds=PROVIDER,
        source="CLIProxyAPI kimi_validation.go",
    ),
    # -- other labs ------------------------------------------------------------------------------
    chat(
        name="mimo",
        need=REQUIRED,
        scope=CALLS,
        reads=(RC,),
        lost='""',
        off=DISABLED,
        source="platform.xiaomimimo.com passing-back-reasoning_content; forgecode#3347",
    ),
    chat(
        name="glm",
        need=SOFT,
        scope=LOOP,
        reads=(RC,),
        off=DISABLED,
        source="docs.z.ai/guides/capabilities/thinking-mode",
    ),
    chat(
        name="minimax",
        need=SOFT,
        reads=(Carrier.THINK, RD),
        source="platform.minimax.io text-openai-api",
    ),
    chat(
        name="qwen",
        need=RECOMMENDED,  # read only with preserve_thinking; otherwise accepted and ignored
        reads=(RC,),
        off=("enable_thinking", "false"),
        source="help.aliyun.com deep-thinking",
    ),
    chat(
        name="hunyuan",
        need=SOFT,
        scope=LOOP,
        reads=(RC,),
        source="cloud.tencent.com/document/product/1823/130930",
    ),
    chat(
        name="stepfun",
        need=RECOMMENDED,
        reads=(R,),
        source="platform.stepfun.com/docs/guide/reasoning",
    ),
    chat(
        name="mistral",
        need=RECOMMENDED,
        reads=(Carrier.CHUNK,),
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
        source="inspect_ai#4079; oh-my-pi#1445",
    ),
    chat(
        name="openrouter",
        need=SOFT,
        reads=(RD, R),
        plain=ROUTED,
        source="openrouter.ai/docs/use-cases/reasoning-tokens",
    ),
    chat(name="groq", need=RECOMMENDED, reads=(R,), source="freellmapi#1070; Kai#265"),
    chat(
        name="cerebras",
        need=RECOMMENDED,
        reads=(R,),
        source="inference-docs.cerebras.ai; qwen-code#11045",
    ),
    chat(
        name="fireworks", need=RECOMMENDED, reads=(RC,), source="docs.fireworks.ai/guides/reasoning"
    ),
    chat(name="together", need=RECOMMENDED, reads=(RC, R), source="docs.together.ai"),
    chat(
        name="siliconflow",
        models=("*kimi*",),
        need=REQUIRED,
        scope=CALLS,
        reads=(RC,),
        lost='""',
        source="QwenPaw#433",
    ),
    chat(name="siliconflow", need=RECOMMENDED, reads=(RC,), source="QwenPaw#433"),
    # -- engines ---------------------------------------------------------------------------------
    chat(
        name="vllm",
        need=RECOMMENDED,
        reads=(R, RC),
        copies=True,
        source="vllm#27752, #38488, #42664",
    ),
    chat(name="sglang", need=RECOMMENDED, reads=(RC,), source="docs.sglang.io"),
    chat(name="llamacpp", need=RECOMMENDED, reads=(RC,), source="llama.cpp#18994"),
    chat(name="ollama", need=RECOMMENDED, reads=(R,), source="ollama#18536"),
    chat(
        name="lmstudio",
        need=RECOMMENDED,
        reads=(Carrier.THINK, RC, R),
        source="lmstudio-bug-tracker#1569",
    ),
    chat(
        name="copilot",
        need=RECOMMENDED,
        reads=(Carrier.REASONING_TEXT, Carrier.REASONING_OPAQUE),
        source="opencode#8900; vscode-copilot-chat#2178",
    ),
    responses(name="copilot", need=RECOMMENDED, reads=(ITEM,)),
    messages(name="copilot", need=RECOMMENDED, reads=(BLOCK,)),
    # -- everybody else: send back what came, under the key it came, and demand nothing ----------
    chat(
        name="generic",
        need=RECOMMENDED,
        reads=(*ANY_TEXT, Carrier.EXTRA_CONTENT, Carrier.REASONING_OPAQUE),
    ),
    responses(name="generic", need=RECOMMENDED, reads=(ITEM,)),
    messages(name="generic", need=RECOMMENDED, reads=(BLOCK,)),
    gemini(name="generic", need=RECOMMENDED, reads=(Carrier.SIGNATURE, Carrier.PART)),
)


def names() -> list[str]:
    """The policy names a user may write."""
    return sorted({row.name for row in ROWS})


@lru_cache(maxsize=1024)
def lookup(name: str, dialect: str, model: str, rows: tuple[Policy, ...] = ROWS) -> Policy:
    """The row for one endpoint, dialect and model; the generic one when there is none."""
    wanted = model.lower()
    fallback: Policy | None = None
    for row in rows:
        if row.dialect != dialect:
            continue
        if row.name == name and any(fnmatchcase(wanted, pattern) for pattern in row.models):
            return row
        if row.name == "generic":
            fallback = row
    if fallback is None:
        raise KeyError(f"no policy for dialect {dialect!r}")
    return fallback
