"""The table. One row per contract; first match wins, so narrower model families come first."""

from fnmatch import fnmatchcase
from functools import lru_cache

from thoughtline.parts import Carrier
from thoughtline.policies.rows import STRICT, Need, Policy, Scope

RC, R, RD = Carrier.REASONING_CONTENT, Carrier.REASONING, Carrier.REASONING_DETAILS
ITEM, BLOCK = Carrier.ITEM, Carrier.BLOCK
DISABLED = ("thinking", '{"type":"disabled"}')
BYPASS = '"skip_thought_signature_validator"'
EMPTY_BLOCK = '{"type":"thinking","thinking":"","signature":""}'
BOUND = ("claude-fable-5-1*", "claude-opus-5-5*", "claude-sonnet-5-5*", "claude-haiku-5-5*")
ROUTED = frozenset({"provider", "model"})
"""Behind a router, another model is another provider: it may refuse even a plain thought."""
ALWAYS_ON = ("claude-fable-5*", "claude-mythos-5*", "claude-opus-5*", "claude-sonnet-5*")

_ANY_TEXT = (RC, R, RD, Carrier.THINK, Carrier.CHUNK, Carrier.REASONING_TEXT)

ROWS: tuple[Policy, ...] = (
    # -- OpenAI and those who speak Responses ----------------------------------------------------
    Policy(
        name="openai",
        dialect="responses",
        need=Need.RECOMMENDED,
        scope=Scope.LOOP,
        reads=(ITEM,),
        stateless=True,
        remembers=True,
        source="developers.openai.com/api/docs/guides/reasoning; litellm#27702",
    ),
    Policy(
        name="openai",
        dialect="chat",
        need=Need.NONE,
        source="developers.openai.com/api/docs/guides/reasoning",
    ),
    Policy(
        name="codex",
        dialect="responses",
        need=Need.RECOMMENDED,
        scope=Scope.LOOP,
        reads=(ITEM,),
        stateless=True,
        source="codex#26173; sub2api#3038",
    ),
    Policy(
        name="azure",
        dialect="responses",
        need=Need.RECOMMENDED,
        scope=Scope.LOOP,
        reads=(ITEM,),
        stateless=True,
        remembers=True,
        source="codex#3528; pi#5524; vercel/ai#12689; hermes-agent#63446",
    ),
    Policy(name="azure", dialect="chat", need=Need.NONE, source="as openai"),
    Policy(
        name="xai",
        dialect="responses",
        need=Need.RECOMMENDED,
        reads=(ITEM,),
        binds=STRICT - {"model"},
        stateless=True,
        remembers=True,
        source="docs.x.ai; sub2api#4535",
    ),
    Policy(name="xai", dialect="chat", need=Need.NONE, source="docs.x.ai"),
    # -- Anthropic and those who host Claude -----------------------------------------------------
    *(
        Policy(
            name=name,
            dialect="messages",
            models=models,
            need=need,
            scope=Scope.LOOP,
            reads=(BLOCK,),
            prefix=prefix,
            off=off,
            thinks=thinks,
            source=source,
        )
        for name, pattern in (("anthropic", "{}"), ("bedrock", "*{}"))
        for models, need, prefix, off, thinks, source in (
            (
                tuple(pattern.format(m) for m in BOUND),
                Need.RECOMMENDED,
                True,
                None,
                True,
                "platform.claude.com/docs/en/build-with-claude/preserved-thinking",
            ),
            (
                tuple(pattern.format(m) for m in ALWAYS_ON),
                Need.RECOMMENDED,
                False,
                None,
                True,
                "platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting",
            ),
            (
                tuple(pattern.format(m) for m in ("claude-*",)),
                Need.REQUIRED,
                False,
                DISABLED,
                False,
                "platform.claude.com/docs/en/build-with-claude/thinking; opencode#3077",
            ),
        )
    ),
    Policy(
        name="bedrock",
        dialect="messages",
        models=("*nova*", "*minimax*"),
        need=Need.FORBIDDEN,
        source="oh-my-pi#9086; bifrost#6942",
    ),
    # -- Google ----------------------------------------------------------------------------------
    *(
        Policy(
            name="gemini",
            dialect=dialect,
            models=models,
            need=need,
            scope=Scope.FIRST_CALL,
            reads=reads,
            lost=lost if need is Need.REQUIRED else "",
            source="ai.google.dev/gemini-api/docs/thought-signatures; pydantic-ai#3881",
        )
        for dialect, reads, lost in (
            ("gemini", (Carrier.SIGNATURE, Carrier.PART), BYPASS),
            (
                "chat",
                (Carrier.EXTRA_CONTENT,),
                '{"google":{"thought_signature":' + BYPASS + "}}",
            ),
        )
        for models, need in (
            (("*gemini-2*", "*gemini-1*"), Need.RECOMMENDED),
            (("*",), Need.REQUIRED),
        )
    ),
    # -- DeepSeek: three endpoints, four contracts -----------------------------------------------
    Policy(
        name="deepseek",
        dialect="chat",
        models=("deepseek-r1*", "deepseek-reasoner-r1*"),
        need=Need.FORBIDDEN,
        reads=(),
        source="api-docs.deepseek.com (retired reasoning-model page)",
    ),
    Policy(
        name="deepseek-r1",
        dialect="chat",
        need=Need.FORBIDDEN,
        source="api-docs.deepseek.com (retired reasoning-model page)",
    ),
    Policy(
        name="deepseek",
        dialect="chat",
        models=("deepseek-v3*",),
        need=Need.REQUIRED,
        scope=Scope.CALLS,
        reads=(RC,),
        lost='""',
        off=DISABLED,
        source="continue#10193; api-docs.deepseek.com/guides/thinking_mode",
    ),
    Policy(
        name="deepseek",
        dialect="chat",
        models=("*flash*",),
        need=Need.REQUIRED,
        with_tools=True,
        beyond=Need.IGNORED,
        reads=(RC,),
        lost='""',
        off=DISABLED,
        source="api-docs.deepseek.com/guides/thinking_mode#tool-calls",
    ),
    Policy(
        name="deepseek",
        dialect="chat",
        need=Need.REQUIRED,
        with_tools=True,
        beyond=Need.IGNORED,
        reads=(RC,),
        lost='" "',
        off=DISABLED,
        source="api-docs.deepseek.com/guides/thinking_mode#tool-calls; hermes-agent#17341",
    ),
    Policy(
        name="deepseek",
        dialect="messages",
        need=Need.REQUIRED,
        scope=Scope.CALLS,
        reads=(BLOCK,),
        binds=frozenset({"provider"}),
        lost=EMPTY_BLOCK,
        off=DISABLED,
        source="9router#2397; Reasonix#8902",
    ),
    Policy(
        name="deepseek",
        dialect="responses",
        need=Need.REQUIRED,
        with_tools=True,
        beyond=Need.IGNORED,
        reads=(ITEM,),
        binds=frozenset({"provider"}),
        every_call=True,
        off=("reasoning", '{"effort":"none"}'),
        source="api-docs.deepseek.com/guides/responses_api; rikkahub#1690",
    ),
    # -- Moonshot --------------------------------------------------------------------------------
    Policy(
        name="kimi",
        dialect="chat",
        models=("*k2.7*", "*k3*", "*k2-thinking*"),
        need=Need.REQUIRED,
        scope=Scope.CALLS,
        beyond=Need.SOFT,
        reads=(RC,),
        lost='""',
        source="platform.moonshot.cn use-kimi-k2-thinking-model; deer-flow#3043",
    ),
    Policy(
        name="kimi",
        dialect="chat",
        need=Need.REQUIRED,
        scope=Scope.CALLS,
        reads=(RC,),
        lost='""',
        off=DISABLED,
        source="kimi-agent-sdk#169; obsidian-yolo#243",
    ),
    Policy(
        name="kimi",
        dialect="messages",
        need=Need.RECOMMENDED,
        reads=(BLOCK,),
        binds=frozenset({"provider"}),
        source="CLIProxyAPI kimi_validation.go",
    ),
    # -- other labs ------------------------------------------------------------------------------
    Policy(
        name="mimo",
        dialect="chat",
        need=Need.REQUIRED,
        scope=Scope.CALLS,
        reads=(RC,),
        lost='""',
        off=DISABLED,
        source="platform.xiaomimimo.com passing-back-reasoning_content; forgecode#3347",
    ),
    Policy(
        name="glm",
        dialect="chat",
        need=Need.SOFT,
        scope=Scope.LOOP,
        reads=(RC,),
        off=DISABLED,
        source="docs.z.ai/guides/capabilities/thinking-mode",
    ),
    Policy(
        name="minimax",
        dialect="chat",
        need=Need.SOFT,
        reads=(Carrier.THINK, RD),
        source="platform.minimax.io text-openai-api",
    ),
    Policy(
        name="qwen",
        dialect="chat",
        need=Need.RECOMMENDED,  # read only with preserve_thinking; otherwise accepted and ignored
        reads=(RC,),
        off=("enable_thinking", "false"),
        source="help.aliyun.com deep-thinking",
    ),
    Policy(
        name="hunyuan",
        dialect="chat",
        need=Need.SOFT,
        scope=Scope.LOOP,
        reads=(RC,),
        source="cloud.tencent.com/document/product/1823/130930",
    ),
    Policy(
        name="stepfun",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(R,),
        source="platform.stepfun.com/docs/guide/reasoning",
    ),
    Policy(
        name="mistral",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(Carrier.CHUNK,),
        source="docs.mistral.ai/capabilities/reasoning",
    ),
    # -- routers and hosts -----------------------------------------------------------------------
    Policy(
        name="openrouter",
        dialect="chat",
        models=("deepseek/*",),
        need=Need.REQUIRED,
        with_tools=True,
        reads=(RC, RD),
        copies=True,
        lost='" "',
        plain=ROUTED,
        source="inspect_ai#4079; oh-my-pi#1445",
    ),
    Policy(
        name="openrouter",
        dialect="chat",
        need=Need.SOFT,
        reads=(RD, R),
        plain=ROUTED,
        source="openrouter.ai/docs/use-cases/reasoning-tokens",
    ),
    Policy(
        name="groq",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(R,),
        source="freellmapi#1070; Kai#265",
    ),
    Policy(
        name="cerebras",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(R,),
        source="inference-docs.cerebras.ai; qwen-code#11045",
    ),
    Policy(
        name="fireworks",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(RC,),
        source="docs.fireworks.ai/guides/reasoning",
    ),
    Policy(
        name="together",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(RC, R),
        source="docs.together.ai",
    ),
    Policy(
        name="siliconflow",
        dialect="chat",
        models=("*kimi*",),
        need=Need.REQUIRED,
        scope=Scope.CALLS,
        reads=(RC,),
        lost='""',
        source="QwenPaw#433",
    ),
    Policy(
        name="siliconflow",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(RC,),
        source="QwenPaw#433",
    ),
    # -- engines ---------------------------------------------------------------------------------
    Policy(
        name="vllm",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(R, RC),
        copies=True,
        source="vllm#27752, #38488, #42664",
    ),
    Policy(
        name="sglang",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(RC,),
        source="docs.sglang.io",
    ),
    Policy(
        name="llamacpp",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(RC,),
        source="llama.cpp#18994",
    ),
    Policy(
        name="ollama",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(R,),
        source="ollama#18536",
    ),
    Policy(
        name="lmstudio",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(Carrier.THINK, RC, R),
        source="lmstudio-bug-tracker#1569",
    ),
    Policy(
        name="copilot",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(Carrier.REASONING_TEXT, Carrier.REASONING_OPAQUE),
        source="opencode#8900; vscode-copilot-chat#2178",
    ),
    Policy(name="copilot", dialect="responses", need=Need.RECOMMENDED, reads=(ITEM,)),
    Policy(name="copilot", dialect="messages", need=Need.RECOMMENDED, reads=(BLOCK,)),
    # -- everybody else: send back what came, under the key it came, and demand nothing ----------
    Policy(
        name="generic",
        dialect="chat",
        need=Need.RECOMMENDED,
        reads=(
            *_ANY_TEXT,
            *(
                Carrier.EXTRA_CONTENT,
                Carrier.REASONING_OPAQUE,
            ),
        ),
    ),
    Policy(name="generic", dialect="responses", need=Need.RECOMMENDED, reads=(ITEM,)),
    Policy(name="generic", dialect="messages", need=Need.RECOMMENDED, reads=(BLOCK,)),
    Policy(
        name="generic",
        dialect="gemini",
        need=Need.RECOMMENDED,
        reads=(Carrier.SIGNATURE, Carrier.PART),
    ),
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
