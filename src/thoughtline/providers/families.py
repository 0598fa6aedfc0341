"""What rows of the policy table have in common: shared columns, and the rows of model families.

A family that several hosts serve is a function of the host's name: `claude`, `gemini`, `engine`.
"""

from functools import partial

from thoughtline.log.capabilities import Capabilities, EffortStyle
from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Need, Scope
from thoughtline.providers.policy import BYPASS, COMPANY, THINKING_OFF, Policy

REQUIRED, SOFT, IGNORED = Need.REQUIRED, Need.SOFT, Need.IGNORED
FORBIDDEN, NONE = Need.FORBIDDEN, Need.NONE
LOOP, CALLS = Scope.LOOP, Scope.CALLS

RC, R, RD = Carrier.REASONING_CONTENT, Carrier.REASONING, Carrier.REASONING_DETAILS
THINK = Carrier.THINK
ANY_TEXT = (RC, R, RD, THINK, Carrier.CHUNK, Carrier.REASONING_TEXT)
GEMINI_PARTS = (Carrier.SIGNATURE, Carrier.PART)

THINKING_ON = ("thinking", '{"type":"enabled"}')
EMPTY_BLOCK = '{"type":"thinking","thinking":"","signature":""}'

TO_MAX = ("low", "medium", "high", "xhigh", "max")
SWITCH = Capabilities(effort_style=EffortStyle.SWITCH)
ALWAYS_ON_SWITCH = Capabilities(effort_style=EffortStyle.SWITCH, thinking_off=False)
DEEPSEEK = Capabilities(effort_style=EffortStyle.SWITCH, efforts=("high", "max"))
DEEPSEEK_4_1 = Capabilities(effort_style=EffortStyle.SWITCH, efforts=("low", "high", "max"))
ROUTER = Capabilities(
    effort_style=EffortStyle.ROUTER, efforts=("none", "minimal", "low", "medium", "high", "xhigh")
)
GLM_5_3 = Capabilities(
    effort_style=EffortStyle.SWITCH, efforts=("low", "high", "max"), thinking_off=False
)  # whether it refuses `disabled` or takes no notice is contested: it is never sent
GPT_6 = Capabilities(thinks_at="medium", efforts=("none", *TO_MAX))
GPT_6_ALWAYS = Capabilities(thinks_at="medium", efforts=TO_MAX, thinking_off=False)
GROK = Capabilities(efforts=("low", "medium", "high", "xhigh"), thinking_off=False)
KIMI_K3 = Capabilities(efforts=("low", "high", "max"), thinking_off=False)
OPENAI = Capabilities(developer_role=True)
ADAPTIVE = Capabilities(effort_style=EffortStyle.ADAPTIVE, thinking_off=False, efforts=TO_MAX)
ASKED = Capabilities(effort_style=EffortStyle.ADAPTIVE, late_system=False)
ASKED_TO_MAX = Capabilities(effort_style=EffortStyle.ADAPTIVE, late_system=False, efforts=TO_MAX)
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

# Hosts spell versions with a dot, too.
BOUND = (
    "claude-fable-5[.-][12]*",
    "claude-mythos-5[.-][12]*",  # 5.1 by the page about Fable 5.2; an older one says it is not
    "claude-opus-5[.-]5*",
    "claude-sonnet-5[.-]5*",
    "claude-haiku-5[.-]5*",
)
ALWAYS_ON = ("claude-fable-5*", "claude-mythos-5*", "claude-opus-5*", "claude-sonnet-5*")
ASKED_XHIGH = ("claude-opus-4[.-][78]*",)
ADAPTING = ("claude-opus-4[.-]6*", "claude-sonnet-4[.-]6*")


def claude(name: str, before: str = "", *, bound: bool = True) -> tuple[Policy, ...]:
    """Return Claude's rows at one of its hosts.

    `before`: a prefix of its model names there; `bound`: the host lets the prefix of a thought be
    checked.
    """
    row = partial(messages, name=name, scope=LOOP, signed=True)  # oh-my-pi#10486, bifrost#6942
    docs = "platform.claude.com/docs/en/build-with-claude"
    optional = partial(row, need=REQUIRED, off=THINKING_OFF["messages"], thinks=False)
    troubleshooting = f"{docs}/thinking-troubleshooting"

    def named(models: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(before + model for model in models)

    return (
        row(models=named(BOUND), prefix=bound, takes=ADAPTIVE, source=f"{docs}/preserved-thinking"),
        row(models=named(ALWAYS_ON), takes=ADAPTIVE, source=troubleshooting),
        optional(models=named(ASKED_XHIGH), takes=ASKED_TO_MAX, source=troubleshooting),
        optional(models=named(ADAPTING), takes=ASKED, source=troubleshooting),
        optional(
            models=(before + "claude-*",),
            takes=MANUAL,
            source=f"{docs}/thinking; opencode#3077",
        ),
    )


def gemini(name: str, dialect: str, models: tuple[str, ...] = ("*",)) -> tuple[Policy, ...]:
    """Gemini in one of its dialects: from 3 on, the first call must have its signature."""
    source = "ai.google.dev/gemini-api/docs/thought-signatures; pydantic-ai#3881"
    reads: tuple[Carrier, ...] = GEMINI_PARTS
    lost = BYPASS
    if dialect == "chat":
        reads = (Carrier.EXTRA_CONTENT,)
        lost = f'{{"google":{{"thought_signature":{BYPASS}}}}}'
    row = partial(
        Policy, name=name, dialect=dialect, scope=Scope.FIRST_CALL, reads=reads, source=source
    )
    return (
        row(
            models=("*gemini-2*", "*gemini-1*"),
            takes=Capabilities(effort_style=EffortStyle.BUDGET, media_in_results=False),
        ),
        row(models=models, need=REQUIRED, lost=lost),
    )


def engine(
    name: str, reads: tuple[Carrier, ...], source: str, *, copies: bool = False
) -> tuple[Policy, ...]:
    """An engine that runs open weights: their chat templates say which thoughts are read."""
    row = partial(chat, name=name, reads=reads, copies=copies, source=source)
    keep, template = "chat_template_kwargs.preserve_thinking", "hermes-agent#56004; pi#3325"
    uncleared = ("chat_template_kwargs.clear_thinking", "false")
    return (
        row(
            models=("*qwen3.[6-9]*", "*kimi-k2.6*"),
            asks=((keep, "true"),),
            source=f"{source}; {template}",
        ),
        row(models=("*glm-*",), asks=(uncleared,), source=f"{source}; {template}"),
        row(),
    )
