"""The policy table. One row per contract; first match wins, so narrower model families come first.

A row says what differs from the defaults of `Policy`: recommended, for all outputs.
"""

from fnmatch import fnmatchcase
from functools import lru_cache

from thoughtline.log.capabilities import Capabilities, EffortStyle
from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Scope
from thoughtline.providers.families import (
    ALWAYS_ON_SWITCH,
    ANY_TEXT,
    CALLS,
    DEEPSEEK_4_1,
    EMPTY_BLOCK,
    FORBIDDEN,
    GEMINI_PARTS,
    GLM_5_3,
    GPT_6,
    GPT_6_ALWAYS,
    GROK,
    IGNORED,
    KIMI_K3,
    LOOP,
    NONE,
    OPENAI,
    RC,
    RD,
    REQUIRED,
    ROUTED,
    ROUTER,
    SOFT,
    SWITCH,
    THINK,
    THINKING_ON,
    TO_MAX,
    R,
    chat,
    claude,
    deepseek_chat,
    deepseek_r1,
    engine,
    gemini,
    messages,
    openai_items,
    responses,
    sealed_items,
    with_calls,
)
from thoughtline.providers.policy import COMPANY, STRICT, THINKING_OFF, Policy

ROWS: tuple[Policy, ...] = (
    # -- OpenAI and those who speak Responses ----------------------------------------------------
    *(
        openai_items(
            name="openai",
            models=models,
            remembers=True,
            takes=takes,
            source="developers.openai.com/api/docs/guides/latest-model; openai-python ChatModel",
        )
        for models, takes in (
            (("gpt-6-astra*", "gpt-6.1-sol*"), GPT_6_ALWAYS),
            (("gpt-[6-9]*",), GPT_6),
        )
    ),
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
    *claude("azure"),
    messages(  # a deployment has whatever name its owner gave it
        name="azure",
        scope=LOOP,
        signed=True,
        source="platform.claude.com/docs/en/build-with-claude/claude-in-microsoft-foundry",
    ),
    sealed_items(
        name="meta",
        takes=Capabilities(efforts=("minimal", *TO_MAX)),
        source="Agora#141; pi-ai catalogue",
    ),
    sealed_items(
        name="xai",
        models=("grok-4.[67]*",),
        scope=Scope.ALL,
        binds=STRICT - {"model"},
        remembers=True,
        takes=GROK,
        source="docs.x.ai; pydantic-ai (models of xAI)",
    ),
    sealed_items(
        name="xai",
        scope=Scope.ALL,
        binds=STRICT - {"model"},
        remembers=True,
        source="docs.x.ai; sub2api#4535",
    ),
    chat(name="xai", reads=(RC,), source="docs.x.ai"),
    # -- Anthropic and those who host Claude -----------------------------------------------------
    *claude("anthropic"),
    *claude("bedrock", "*"),  # a region and a vendor stand before the name
    messages(
        name="bedrock",
        models=("*nova*", "*minimax*"),
        need=FORBIDDEN,
        reads=(),
        source="oh-my-pi#9086; bifrost#6942",
    ),
    sealed_items(name="bedrock", source="docs.aws.amazon.com inference-responses-api"),
    chat(name="bedrock", need=NONE, source="docs.aws.amazon.com inference-chat-completions"),
    # -- Google ----------------------------------------------------------------------------------
    *gemini("gemini", "gemini"),
    *gemini("gemini", "chat"),
    # the signatures of one are not valid at the other: gemini-cli-core config.js
    *gemini("vertex", "gemini"),
    *gemini("vertex", "chat", ("*gemini*",)),
    *claude("vertex"),
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
        models=("*v4.1-flash*", "deepseek-flash*"),
        lost='""',
        takes=DEEPSEEK_4_1,
        source="api-docs.deepseek.com/guides/thinking_mode; pi-ai catalogue",
    ),
    deepseek_chat(
        models=("*v4.1*",),
        lost='" "',
        takes=DEEPSEEK_4_1,
        source="api-docs.deepseek.com/guides/thinking_mode; pi-ai catalogue",
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
    # of the coding plan: each message, and not only those with calls
    chat(
        name="kimi",
        models=("k3", "k3-*", "k3.*", "kimi-for-coding"),
        need=REQUIRED,
        reads=(RC,),
        lost='""',
        takes=KIMI_K3,
        source="pi-ai catalogue (kimi-coding)",
    ),
    with_calls(
        name="kimi",
        models=("*k3*",),
        beyond=SOFT,
        takes=KIMI_K3,
        source="platform.moonshot.cn use-kimi-k2-thinking-model; deer-flow#3043",
    ),
    with_calls(
        name="kimi",
        models=("*k2.7*", "*k2-thinking*", "kimi-for-coding-*"),
        beyond=SOFT,
        takes=ALWAYS_ON_SWITCH,
        source="platform.moonshot.cn use-kimi-k2-thinking-model; deer-flow#3043",
    ),
    with_calls(
        name="kimi",
        models=("*k2.6*",),
        off=THINKING_OFF["chat"],
        takes=SWITCH,
        asks=(THINKING_ON, ("thinking.keep", '"all"')),
        source="kimi-agent-sdk#169; platform.kimi.ai thinking (`keep`: ignored unless it is said)",
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
    messages(
        name="mimo",
        need=REQUIRED,
        scope=CALLS,
        binds=COMPANY,
        lost=EMPTY_BLOCK,
        off=THINKING_OFF["messages"],
        source="platform.xiaomimimo.com passing-back-reasoning_content",
    ),
    *(
        chat(
            name="glm",
            models=models,
            need=SOFT,
            scope=LOOP,
            reads=(RC,),
            off=off,
            takes=takes,
            asks=(THINKING_ON, ("thinking.clear_thinking", "false")),
            source="docs.z.ai/guides/capabilities/thinking-mode",
        )
        for models, off, takes in (
            (("*glm-5.3*",), None, GLM_5_3),
            (
                ("*glm-5.2*",),
                THINKING_OFF["chat"],
                Capabilities(effort_style=EffortStyle.SWITCH, efforts=("high", "max")),
            ),
            (("*",), THINKING_OFF["chat"], SWITCH),
        )
    ),
    messages(
        name="glm",
        need=SOFT,
        binds=COMPANY,
        asks=(("thinking?.clear_thinking", "false"),),
        source="docs.z.ai/guides/capabilities/thinking-mode; umans-gate",
    ),
    chat(
        name="minimax",
        need=SOFT,
        reads=(THINK, RD),
        takes=Capabilities(late_system=False, thinking_off=False),
        source="platform.minimax.io text-openai-api",
    ),
    messages(name="minimax", need=SOFT, binds=COMPANY, source="platform.minimax.io text-anthropic"),
    chat(
        name="qwen",
        reads=(RC,),
        off=("enable_thinking", "false"),
        takes=Capabilities(effort_style=EffortStyle.ENABLE, late_system=False),
        asks=(("preserve_thinking", "true"),),  # taken for every model: qwen-code
        source="help.aliyun.com deep-thinking; docs.qwencloud.com thinking",
    ),
    messages(name="qwen", binds=COMPANY, source="help.aliyun.com anthropic-compatible"),
    chat(
        name="doubao",
        need=SOFT,
        reads=(RC,),
        off=THINKING_OFF["chat"],
        takes=Capabilities(
            effort_style=EffortStyle.SWITCH, efforts=("minimal", "low", "medium", "high")
        ),
        source="models.dev#5513; AstrBot#6852 (no rule about thoughts was found)",
    ),
    chat(
        name="longcat",
        reads=(RC,),
        off=THINKING_OFF["chat"],
        takes=SWITCH,
        source="longcat.chat/platform/docs",
    ),
    with_calls(
        name="hunyuan",
        models=("*kimi*", "*mimo*"),
        plain=ROUTED,
        source="models.dev (Tencent TokenHub); deer-flow#3043",
    ),
    deepseek_chat(
        name="hunyuan",
        models=("*deepseek-v4*",),
        lost='" "',
        plain=ROUTED,
        source="models.dev (Tencent TokenHub); hermes-agent#17341",
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
    *claude("openrouter", "*", bound=False),
    messages(
        name="openrouter", plain=ROUTED, source="openrouter.ai/docs/guides/anthropic-messages"
    ),
    sealed_items(name="openrouter", source="openrouter.ai/docs/api/reference/responses"),
    chat(name="vercel", reads=(RD, R, RC), plain=ROUTED, source="vercel.com/docs/ai-gateway"),
    *claude("vercel", "*"),
    messages(name="vercel", plain=ROUTED, source="vercel.com/docs/ai-gateway"),
    sealed_items(name="vercel", source="vercel.com/docs/ai-gateway"),
    chat(
        name="cloudflare",
        reads=ANY_TEXT,
        plain=ROUTED,
        source="developers.cloudflare.com/ai-gateway",
    ),
    *claude("cloudflare", "*"),
    openai_items(name="cloudflare", source="developers.cloudflare.com/ai-gateway"),
    chat(name="huggingface", reads=ANY_TEXT, plain=ROUTED, source="huggingface.co/docs/router"),
    chat(
        name="baseten",
        models=("*glm*",),
        reads=(RC, R),
        plain=ROUTED,
        asks=(("chat_template_args.clear_thinking", "false"),),
        source="pi-ai catalogue; docs.baseten.co",
    ),
    chat(name="baseten", reads=(RC, R), plain=ROUTED, source="models.dev; docs.baseten.co"),
    chat(name="nvidia", reads=(RC,), plain=ROUTED, source="hermes-agent#77973"),
    chat(name="novita", reads=(RC, RD), plain=ROUTED, source="novita.ai/docs; models.dev"),
    messages(name="novita", plain=ROUTED, source="models.dev"),
    chat(name="chutes", reads=(RC,), plain=ROUTED, source="pi-mono changelog (both keys, equal)"),
    chat(name="perplexity", need=NONE, source="docs.perplexity.ai"),
    chat(name="github-models", need=NONE, source="docs.github.com/github-models"),
    chat(name="groq", reads=(R,), source="freellmapi#1070; Kai#265"),
    chat(name="cerebras", reads=(R,), source="inference-docs.cerebras.ai; qwen-code#11045"),
    chat(
        name="fireworks",
        reads=(RC,),
        asks=(("reasoning_history", '"preserved"'),),
        source="docs.fireworks.ai/guides/reasoning, …/thinking-history",
    ),
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
    *engine("vllm", (R, RC), "vllm#27752, #38488, #42664", copies=True),
    *engine("sglang", (RC,), "docs.sglang.io"),
    *engine("llamacpp", (RC,), "llama.cpp#18994"),
    chat(name="ollama", reads=(R,), source="ollama#18536"),
    *engine("lmstudio", (THINK, RC, R), "lmstudio-bug-tracker#1569"),
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
