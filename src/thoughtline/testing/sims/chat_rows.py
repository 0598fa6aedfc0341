"""The Chat Completions providers, one row each: what they emit, insist on, and how they say no.

Each row cites what it encodes: vendor documentation by host and page, observed behaviour by the
issue that shows it (repository#number). Where the sources differ, the row is the stricter one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import msgspec

from thoughtline.testing.sims import chat_calls as calls
from thoughtline.testing.sims import chat_checks as check
from thoughtline.testing.sims import chat_errors as says
from thoughtline.testing.sims.chat_carriers import Carrier, Chunks, Field, Inline
from thoughtline.testing.sims.chat_errors import Complaint, Shape
from thoughtline.testing.sims.chat_sealed import Details, Opaque, PlainDetails, Signed
from thoughtline.testing.sims.chat_view import OPENAI_ROLES, View


def _always(_view: View) -> bool:
    return True


def _unless_disabled(view: View) -> bool:
    # On by default; leaving the parameter out does not turn it off (OmniRoute#1628).
    return bool(view.option("thinking", "type") != "disabled")


def _reads_all(_view: View) -> str:
    return "all"


def _reads_loop(_view: View) -> str:
    return "loop"


def _reads_none(_view: View) -> str:
    return "none"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One provider."""

    summary: str
    """What it enforces, in one sentence."""
    models: tuple[str, ...]
    carrier: Carrier
    checks: tuple[check.Check, ...] = ()
    bases: tuple[str, ...] = ("/v1",)
    """Paths that the endpoint hangs under; the first is the usual one, `/v1` always works."""
    shape: Shape = says.openai_shape
    complain: Complaint = says.openai_complaint
    roles: tuple[str, ...] = OPENAI_ROLES
    naming: str = "call_{digest:.24}"
    """A tool-call id: `digest` is a hash, `number` the same in digits, `name` the tool's name, `at`
    the index in the message (`nth` from 1), `total` the index in the conversation."""
    thinks: Callable[[View], bool] = _always
    """Whether the model thinks in this request."""
    reads: Callable[[View], str] = _reads_all
    """Which returned thoughts the model gets to see: `all`, `loop` or `none`."""
    switches: tuple[tuple[str, object, Carrier], ...] = ()
    """Request parameter, value → another carrier."""
    families: tuple[tuple[str, Carrier], ...] = ()
    """Start of the model's name → another carrier."""
    blank: str | None = None
    """The content of a message that only calls tools."""
    comment: str = ""
    """What the stream opens with, as an SSE comment."""
    usage_last: bool = False
    """Usage stands on the last chunk, asked for or not."""
    stamp: Callable[[str], dict[str, str]] = lambda _model: {}
    """What an answer of a model says beside its choices."""
    error_prefix: bytes = b""
    """What stands before the JSON of an error when a stream was asked for."""
    unauthorized: str = "Incorrect API key provided."

    def usual(self, model: str) -> Carrier:
        """How this model's thoughts travel when nothing else is asked for."""
        return next((c for prefix, c in self.families if model.startswith(prefix)), self.carrier)

    def readers(self, model: str) -> tuple[Carrier, ...]:
        """Every carrier that may be found in a history sent to this model."""
        return (self.usual(model), *(carrier for *_, carrier in self.switches))


_ANSWERED = calls.answered(
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. (insufficient tool messages following tool_calls message)",  # codex#22129
    "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
)  # OpenManus#227

_V4_MISSING = "The `reasoning_content` in the thinking mode must be passed back to the API."
_V4_RULE = check.all_turns(_V4_MISSING)
_V32_MISSING = (
    "Missing `reasoning_content` field in the assistant message at message index {index}. For more "
    "information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
)
_R1_PRESENT = (
    "The reasoning_content is an intermediate result for display purposes only and will not be "
    "included in the context for inference. Please remove the reasoning_content from your message "
    "to reduce network traffic."
)
_KIMI_ANSWERED = calls.answered(
    "an assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
    "tool_call_id {id} is not found",
)  # kimi-cli#1977, gentle-pi#1052
_KIMI_RULE = check.call_turns(
    "thinking is enabled but reasoning_content is missing in assistant tool call message "
    "at index {index}"
)

_DEEPSEEK_SHAPE = (calls.function_tools, check.typed("reasoning_content"), _ANSWERED)

# With `tools` in the request, every assistant turn must bring its thought back, also the plain
# ones; without, they are ignored: api-docs.deepseek.com/guides/thinking_mode (modelparams.dev#29).
_DEEPSEEK = Row(
    summary="With tools, every assistant turn must bring back its reasoning_content (V4).",
    models=("deepseek-v4-flash", "deepseek-v4-pro"),
    carrier=Field("reasoning_content", always=True, nulls=True),
    checks=(*_DEEPSEEK_SHAPE, _V4_RULE),
    bases=("", "/v1", "/beta"),
    shape=says.deepseek_shape,
    complain=says.serde_complaint,
    roles=("system", "user", "assistant", "tool", "latest_reminder"),  # cc-switch#3330
    naming="call_{at:02d}_{digest:.24}",  # fireconnect#16
    thinks=_unless_disabled,
    reads=lambda view: "all" if view.tools else "none",
    blank="",
    comment="keep-alive",  # api-docs.deepseek.com/quick_start/rate_limit
    usage_last=True,
    unauthorized="Authentication Fails (no such user)",
)


def _kimi_reads(view: View) -> str:
    """K2.6 keeps what it is told to keep, and K2.5 knows no such switch."""
    kept = view.model == "kimi-k2.6" and view.option("thinking", "keep") == "all"
    return "all" if kept else "loop"


def _qwen_reads(view: View) -> str:
    """3.8 reads them unless it is told not to, 3.6 and 3.7 only where they are told to."""
    said = view.option("preserve_thinking")
    kept = said is not False if view.model.startswith("qwen3.8") else said is True
    return "all" if kept else "none"


def _template_reads(view: View, member: str) -> str:
    """What the chat template of the model does with the variables that it is given."""
    told = functools.partial(view.option, member)
    model = view.model.lower()
    if "glm" in model:
        return "all" if told("clear_thinking") is False else "loop"
    if "qwen3.6" in model:
        return "all" if told("preserve_thinking") is True else "loop"
    return "all"


def _fireworks_reads(view: View) -> str:
    words = {"preserved": "all", "interleaved": "loop", "disabled": "none"}
    return words.get(view.option("reasoning_history") or "interleaved", "none")


def _v32_thinks(view: View) -> bool:
    asked = view.option("thinking", "type")
    return asked == "enabled" or (view.model != "deepseek-chat" and asked != "disabled")


ROWS: dict[str, Row] = {
    "deepseek": _DEEPSEEK,
    # Tool-calling messages since the last user message (continue#10193); the documentation's own
    # sample clears the thoughts of earlier turns.
    "deepseek-v3.2": msgspec.structs.replace(
        _DEEPSEEK,
        summary="Tool-calling messages since the last user message must have reasoning_content.",
        models=("deepseek-reasoner", "deepseek-chat"),
        checks=(*_DEEPSEEK_SHAPE, check.call_turns(_V32_MISSING, loop=True)),
        thinks=_v32_thinks,
        reads=_reads_loop,
    ),
    # Any thought in the input is an error: api-docs.deepseek.com/guides/reasoning_model (retired),
    # text in Mirai-Gpt-Plugin#4.
    "deepseek-r1": msgspec.structs.replace(
        _DEEPSEEK,
        summary="Any reasoning_content in the input is an error.",
        models=("deepseek-reasoner",),
        checks=(*_DEEPSEEK_SHAPE, check.no_thoughts(_R1_PRESENT)),
        thinks=_always,
        reads=_reads_none,
    ),
    # Only messages with tool calls are checked (deer-flow#3043, FastGPT#6357); `keep` decides what
    # of earlier turns the model reads; ids count over the conversation (sglang#9606).
    "kimi": Row(
        summary="Tool-calling messages must have reasoning_content; their ids are counted.",
        models=("kimi-k2.6", "kimi-k2.5"),
        carrier=Field("reasoning_content", always=True),
        checks=(check.typed("reasoning_content"), _KIMI_ANSWERED, _KIMI_RULE),
        shape=says.short_shape,
        naming="functions.{name}:{total}",
        thinks=_unless_disabled,
        reads=_kimi_reads,
        blank="",
        usage_last=True,
        unauthorized="Invalid Authentication",
    ),
    # Cannot be switched off, reads the whole history; ids restart in every message (vllm#50295).
    "kimi-k3": Row(
        summary="As kimi, but thinking cannot be switched off and ids restart in every message.",
        models=("kimi-k3", "kimi-k2.7-code"),
        carrier=Field("reasoning_content", always=True),
        checks=(check.typed("reasoning_content"), _KIMI_ANSWERED, _KIMI_RULE),
        shape=says.short_shape,
        naming="{name}:{at}",
        blank="",
        usage_last=True,
        unauthorized="Invalid Authentication",
    ),
    # platform.xiaomimimo.com passing-back-reasoning_content; the text is in `param`, and a stream's
    # error starts with `data:` (chatbox#3716, forgecode#3347); tool content is a string (MiMo#44).
    "mimo": Row(
        summary="Tool-calling messages must have reasoning_content; the error text is in `param`.",
        models=("mimo-v2.5-pro", "mimo-v2.5", "mimo-v2-flash"),
        carrier=Field("reasoning_content", always=True),
        checks=(
            check.typed("reasoning_content"),
            calls.string_results("messages.content must be a string"),
            check.call_turns(
                "The reasoning_content in the thinking mode must be passed back to the API."
            ),
        ),
        shape=says.mimo_shape,
        thinks=_unless_disabled,
        blank="",
        error_prefix=b"data:",
    ),
    # Nothing is rejected; a changed or missing thought costs quality and cache:
    # docs.z.ai/guides/capabilities/thinking-mode.
    "glm": Row(
        summary="Rejects nothing; reports each reasoning_content that is missing or changed.",
        models=("glm-5.2", "glm-4.7", "glm-4.6"),
        carrier=Field("reasoning_content"),
        bases=("/api/paas/v4", "/api/coding/paas/v4", "/v1"),
        shape=says.glm_shape,
        complain=says.glm_complaint,
        naming="call_{number:019d}",
        thinks=_unless_disabled,
        reads=lambda view: "all" if view.option("thinking", "clear_thinking") is False else "loop",
        unauthorized="Authentication parameter not received in Header, unable to authenticate",
    ),
    # Thoughts stand in the content, or apart with `reasoning_split`; cannot be switched off:
    # platform.minimax.io text-openai-api; texts from MiniMax-M2#76 and pi#5468.
    "minimax": Row(
        summary="Thoughts stand in the content between <think> tags; rejects nothing, reports.",
        models=("MiniMax-M2.7", "MiniMax-M2.1", "MiniMax-M3"),
        carrier=Inline(),
        switches=(("reasoning_split", True, Details("MiniMax-response-v1", signed=False)),),
        checks=(
            calls.json_arguments(
                "invalid params, invalid function arguments json string, tool_call_id: {id} (2013)"
            ),
            calls.known_results("invalid params, tool result's tool id({id}) not found (2013)"),
        ),
        shape=says.minimax_shape,
        complain=says.minimax_complaint,
        naming="call_function_{digest:.12}_{nth}",
        blank="",
    ),
    # History thoughts are not read unless `preserve_thinking`: help.aliyun.com deep-thinking.
    "qwen": Row(
        summary="Reads returned thoughts only with preserve_thinking (3.8: unless it is false).",
        models=("qwen3.8-max", "qwen3.6-plus", "qwen3.7-max"),
        carrier=Field("reasoning_content"),
        bases=("/compatible-mode/v1", "/v1"),
        thinks=lambda view: view.option("enable_thinking") is not False,
        reads=_qwen_reads,
        blank="",
    ),
    # Emits and takes `reasoning`, rejects `reasoning_content`: jan#8136, hermes-agent#11089.
    "groq": Row(
        summary="Emits and takes `reasoning`; rejects reasoning_content.",
        models=("openai/gpt-oss-120b", "qwen/qwen3-32b"),
        carrier=Field("reasoning"),
        switches=(("reasoning_format", "hidden", Carrier()), ("reasoning_format", "raw", Inline())),
        bases=("/openai/v1", "/v1"),
        checks=(
            check.unsupported(
                "'messages.{at}' : for 'role:assistant' the following must be satisfied"
                "[('messages.{at}' : property '{key}' is unsupported)]",
                ", ",
            ),
            check.typed("reasoning"),
        ),
        shape=says.short_shape,
        complain=says.joi_complaint,
        stamp=lambda _model: {"service_tier": "on_demand"},
        naming="fc_{digest:.32}",
        unauthorized="Invalid API Key",
    ),
    # The same, one line per message, in a flat body: kilocode#10375, free-claude-code#1136.
    "cerebras": Row(
        summary="Emits and takes `reasoning`; rejects reasoning_content, in a flat body.",
        models=("gpt-oss-120b", "zai-glm-4.7", "qwen-3.8-27b"),
        carrier=Field("reasoning"),
        switches=(("reasoning_format", "hidden", Carrier()), ("reasoning_format", "raw", Inline())),
        checks=(
            check.unsupported_body("thinking", "enable_thinking", "reasoning"),
            check.unsupported(
                "messages.{at}.assistant.{key}: "
                "property 'messages.{at}.assistant.{key}' is unsupported",
                "\n",
            ),
            check.typed("reasoning"),
        ),
        shape=says.flat_shape,
        complain=says.joi_complaint,
        naming="{digest:.9}",
        unauthorized="Wrong API Key",
    ),
    # docs.mistral.ai/capabilities/reasoning; unknown keys are 422, ids nine alphanumerics.
    "mistral": Row(
        summary="Thinking chunks in the content; unknown keys are 422, ids nine alphanumerics.",
        models=("magistral-medium-latest", "mistral-medium-3-5"),
        carrier=Chunks(),
        checks=(check.no_extras, calls.nine_alphanumerics),
        shape=says.mistral_shape,
        complain=says.pydantic_complaint,
        roles=("system", "user", "assistant", "tool"),
        naming="{digest:.9}",
        thinks=lambda view: view.option("reasoning_effort") != "none",
        blank="",
        unauthorized="Unauthorized",
    ),
    # Emits `reasoning` (vllm#33402); reads it and the old name (vllm#42664); rejects nothing.
    "vllm": Row(
        summary="Emits `reasoning`, reads reasoning_content too; rejects nothing, reports.",
        models=("deepseek-ai/DeepSeek-V4-Flash", "zai-org/GLM-4.7", "Qwen/Qwen3.6-35B-A3B"),
        carrier=Field("reasoning", reads=("reasoning", "reasoning_content")),
        reads=lambda view: _template_reads(view, "chat_template_kwargs"),
        shape=says.vllm_shape,
        complain=says.vllm_complaint,
        naming="chatcmpl-tool-{digest:.32}",
        thinks=lambda view: view.option("chat_template_kwargs", "enable_thinking") is not False,
        unauthorized="Unauthorized",
    ),
    # docs.fireworks.ai/guides/reasoning, thinking-history.
    "fireworks": Row(
        summary="Reads thoughts of earlier turns only with `reasoning_history`; rejects nothing.",
        models=("accounts/fireworks/models/glm-5p2", "accounts/fireworks/models/kimi-k2p6"),
        carrier=Field("reasoning_content"),
        checks=(check.typed("reasoning_content"),),
        bases=("/inference/v1", "/v1"),
        reads=_fireworks_reads,
    ),
    # `args` and not `kwargs`: pi-ai catalogue.
    "baseten": Row(
        summary="Its chat templates read thoughts as `chat_template_args` say; rejects nothing.",
        models=("zai-org/GLM-5.2", "moonshotai/Kimi-K2.7"),
        carrier=Field("reasoning_content", reads=("reasoning_content", "reasoning")),
        reads=lambda view: _template_reads(view, "chat_template_args"),
    ),
    # Signed details come back unchanged and in order: openrouter.ai/docs reasoning-tokens;
    # DeepSeek behind it wants the plain field too: inspect_ai#4079, oh-my-pi#1445.
    "openrouter": Row(
        summary="Signed reasoning_details come back unchanged and in order.",
        models=("anthropic/claude-sonnet-4.5", "deepseek/deepseek-v4-pro"),
        carrier=Details("anthropic-claude-v1", signed=True, plain="reasoning"),
        families=(("deepseek/", PlainDetails("unknown", signed=False, plain="reasoning")),),
        checks=(
            check.via("anthropic/", "Anthropic", check.sealed_details),
            check.via("deepseek/", "DeepSeek", _V4_RULE),
        ),
        bases=("/api/v1", "/v1"),
        shape=says.openrouter_shape,
        naming="toolu_01{digest:.22}",
        thinks=lambda view: view.option("reasoning", "enabled") is not False,
        blank="",
        comment="OPENROUTER PROCESSING",
        stamp=lambda model: {"provider": model.partition("/")[0].capitalize()},
        usage_last=True,
        unauthorized="No auth credentials found",
    ),
    # Both fields go back; leaving them out is tolerated now (opencode#8900), forging is not.
    "copilot": Row(
        summary="reasoning_text and reasoning_opaque; missing is tolerated, forged is not.",
        models=("gemini-3-pro-preview", "claude-sonnet-4.5"),
        carrier=Opaque(),
        checks=(check.typed("reasoning_text", "reasoning_opaque"), check.sealed_opaque),
        bases=("", "/v1"),
        unauthorized="unauthorized: token expired",
    ),
    # ai.google.dev/gemini-api/docs/thought-signatures; the error is an array (openclaude#431).
    "gemini-compat": Row(
        summary="The first call of each step of the current turn must keep its thought_signature.",
        models=("gemini-3-pro-preview", "gemini-3-flash-preview", "gemini-2.5-pro"),
        carrier=Signed(),
        checks=(check.signed_steps,),
        bases=("/v1beta/openai", "/v1"),
        shape=says.google_shape,
        naming="function-call-{number}",
        reads=_reads_loop,
        unauthorized="API key not valid. Please pass a valid API key.",
    ),
}
