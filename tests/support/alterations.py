"""What real clients do to a history before they send it back, one function per habit.

`CHAT` alters the messages of a Chat Completions body, `TURNS` the same things in the values that
every dialect reads into. All of them keep a turn recognisable: `canonical.visible` is blind to each.

Left out, because no key over what is visible can survive them:
- smolagents' ToolCallingAgent flattens calls to the text `Calling tools:\\n[{'id': …}]` and results
  to user messages `Observation:\\n…`: neither the calls nor the results are there any more.
- smolagents' CodeAgent appends `</code>` to the assistant's text: it is another text.
- aider's and qwen-code's made-up assistant messages ("Ok.", "Got it. Thanks for the context!") are
  turns that never happened; what follows is found by its neighbours (`near`), not by its chain.
"""

import json
import re
from copy import deepcopy
from functools import wraps

from msgspec.structs import replace

from thoughtline.dialects.chat.inline import split
from thoughtline.log.parts import Call, Result, Text, Thought

MEMBERS = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_text",
    "reasoning_opaque",
)


# --- helpers -----------------------------------------------------------------------------------


def assistants(change):
    """An alteration of each assistant message by itself."""

    @wraps(change)
    def altered(messages):
        messages = deepcopy(messages)
        for message in messages:
            if message["role"] == "assistant":
                change(message)
        return messages

    return altered


def calls(change):
    """An alteration of each tool call by itself."""

    @wraps(change)
    def each(message):
        for call in message.get("tool_calls") or ():
            change(call)

    return assistants(each)


def arguments(respell):
    """An alteration of the arguments of each call, parsed."""

    def each(call):
        text = call["function"]["arguments"]
        call["function"]["arguments"] = respell(json.loads(text or "{}"))

    return calls(each)


def texts(change):
    """An alteration of the text of each assistant message, string or parts."""

    def each(message):
        content = message.get("content")
        if isinstance(content, str):
            message["content"] = change(content)
        for part in content if isinstance(content, list) else ():
            if "text" in part:
                part["text"] = change(part["text"])

    return assistants(each)


def ids(rename):
    """An alteration of the ids of calls, and of the results that refer to them."""

    def altered(messages):
        messages = deepcopy(messages)
        names = {}
        for message in messages:
            for call in message.get("tool_calls") or ():
                call["id"] = names[call["id"]] = rename(call["id"], len(names))
            if message["role"] == "tool":
                message["tool_call_id"] = names.get(message["tool_call_id"], "lost")
        return messages

    return altered


def silent(message):
    """Whether a message says nothing aloud beside its calls."""
    return not message.get("content")


def in_javascript(value):
    """A value after JSON.parse: every number is a float, and whole ones lose their point."""
    if isinstance(value, dict):
        return {key: in_javascript(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [in_javascript(inner) for inner in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


def whole(value):
    """A value whose whole floats have become integers; nothing else changes."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return [whole(inner) for inner in value] if isinstance(value, list) else value


def backwards(value):
    """A value with the keys of its objects in another order."""
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    return [backwards(inner) for inner in value] if isinstance(value, list) else value


def brought_back(said, changes, *, spell=None):
    """A conversation, (input, output) by (input, output), as a client with these habits sends it.

    An output is a list of JSON texts; a change takes and gives the values of one.
    """
    told = []
    for asked, output in said:
        values = [json.loads(raw) for raw in output]
        for change in changes:
            values = change(values)
        told.append((asked, [json.dumps(value) for value in (spell(values) if spell else values)]))
    return told


# --- thoughts ----------------------------------------------------------------------------------


@assistants
def reasoning_stripped(message):
    """langchain, agno, autogen, llm, crewai, strands, continue and many more."""
    for member in MEMBERS:
        message.pop(member, None)
    content = message.get("content")
    if isinstance(content, str):
        message["content"] = split(content)[1]
    if isinstance(content, list):
        message["content"] = [part for part in content if part.get("type") != "thinking"]
    for call in message.get("tool_calls") or ():
        call.pop("extra_content", None)


@assistants
def reasoning_renamed(message):
    """litellm, the AI SDK: `reasoning` comes back as `reasoning_content`, details are lost."""
    if "reasoning" in message:
        message["reasoning_content"] = message.pop("reasoning")
    message.pop("reasoning_details", None)


@assistants
def reasoning_truncated(message):
    """openai js .stream(): only the last delta is left."""
    for member in MEMBERS:
        if isinstance(message.get(member), str):
            message[member] = message[member][-3:]


@assistants
def reasoning_trimmed(message):
    """qwen-code."""
    for member in MEMBERS:
        if isinstance(message.get(member), str):
            message[member] = message[member].strip()


@assistants
def reasoning_emptied(message):
    """opencode for DeepSeek: the key is there, and empty."""
    for member in MEMBERS:
        message.pop(member, None)
    message["reasoning_content"] = ""


def reasoning_of_old_turns_dropped(messages):
    """@ai-sdk/deepseek: kept only after the last user message."""
    last = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=0)
    return reasoning_stripped(messages[:last]) + deepcopy(messages[last:])


@assistants
def reasoning_in_think_tags(message):
    """Clients that have no other place for it fold it into the content."""
    thought = message.pop("reasoning_content", None) or message.pop("reasoning", None)
    if thought and "</think>" not in thought and isinstance(message.get("content"), str | None):
        message["content"] = f"<think>{thought}</think>\n\n{message.get('content') or ''}"


@assistants
def reasoning_in_aiders_tags(message):
    """aider --restore-chat-history."""
    tag = "thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b"
    thought = message.pop("reasoning_content", None) or "Hmm."
    content = message.get("content")
    if isinstance(content, str) and content.strip() and f"</{tag}>" not in thought:
        message["content"] = f"\n<{tag}>\n{thought}\n</{tag}>\n\n{split(content)[1]}\n\n"


@calls
def signature_replaced(call):
    """gemini-cli after a resume: Gemini's bypass instead of the signature."""
    if "extra_content" in call:
        bypass = "skip_thought_signature_validator"
        call["extra_content"] = {"google": {"thought_signature": bypass}}


# --- content -----------------------------------------------------------------------------------


@assistants
def empty_content_is_null(message):
    """openai py, langchain, pydantic-ai, AI SDK, kilo, pi, cline."""
    if silent(message):
        message["content"] = None


@assistants
def empty_content_is_a_string(message):
    """langchain js, agno, opencode, qwen-code, continue."""
    if silent(message):
        message["content"] = ""


@assistants
def empty_content_is_a_list(message):
    """kimi-cli as openai_legacy."""
    if silent(message):
        message["content"] = []


@assistants
def empty_content_is_omitted(message):
    """litellm, strands, adk, kimi-cli, vibe, openhands."""
    if silent(message):
        message.pop("content", None)


@assistants
def content_as_parts(message):
    """strands, openhands, smolagents."""
    if isinstance(message.get("content"), str):
        message["content"] = [{"text": message["content"], "type": "text"}]


@assistants
def content_as_annotated_parts(message):
    """openai-agents js."""
    if isinstance(message.get("content"), str):
        message["content"] = [{"type": "text", "text": message["content"], "annotations": []}]


@assistants
def parts_as_content(message):
    """openhands, where the model's name asks for it: one string again."""
    content = message.get("content")
    if isinstance(content, list) and all("text" in part for part in content):
        message["content"] = "".join(part["text"] for part in content)


def text_trimmed(messages):
    """qwen-code, open-interpreter, openhands on Responses."""
    return texts(str.strip)(messages)


def text_trimmed_in_javascript(messages):
    """String.prototype.trim takes U+FEFF along."""
    return texts(lambda text: re.sub(r"^[\s\ufeff]+|[\s\ufeff]+$", "", text))(messages)


def text_padded(messages):
    """aider."""
    return texts(lambda text: f"\n{text}\n\n" if text else text)(messages)


@assistants
def text_beside_calls_dropped(message):
    """crewai; agno on Responses."""
    if message.get("tool_calls"):
        message["content"] = None


@assistants
def placeholder_beside_calls(message):
    """litellm on Messages."""
    if message.get("tool_calls") and silent(message):
        message["content"] = "[System: Empty message content sanitised to satisfy protocol]"


# --- calls -------------------------------------------------------------------------------------


def arguments_compact(messages):
    """pydantic-ai, opencode, kilo, pi, cline, qwen-code, continue, kimi-code."""
    return arguments(lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False))(
        messages
    )


def arguments_spaced(messages):
    """langchain, strands, adk."""
    return arguments(lambda value: json.dumps(value, ensure_ascii=False))(messages)


def arguments_escaped(messages):
    """llm, openhands: spaces and \\u escapes."""
    return arguments(json.dumps)(messages)


def arguments_reordered(messages):
    """The AI SDK: in the order of the tool's schema."""
    return arguments(lambda value: json.dumps(backwards(value)))(messages)


def arguments_in_javascript(messages):
    """langchain js, the AI SDK: 5.0 becomes 5."""
    return arguments(
        lambda value: json.dumps(in_javascript(backwards(value)), separators=(",", ":"))
    )(messages)


@calls
def empty_arguments_are_omitted(call):
    """A call of a tool without parameters: `{}`, an empty string or nothing."""
    if call["function"]["arguments"] in {"{}", ""}:
        call["function"]["arguments"] = ""


def ids_of_nine_letters(messages):
    """opencode for a model with *mistral* in its name; they may collide."""
    return ids(lambda id, n: re.sub("[^A-Za-z0-9]", "", id)[:9].ljust(9, "0"))(messages)


def ids_scrubbed(messages):
    """opencode for a model with *claude* in its name: functions.bash:0 → functions_bash_0."""
    return ids(lambda id, n: re.sub("[^A-Za-z0-9_-]", "_", id))(messages)


def ids_counted(messages):
    """open-interpreter."""
    return ids(lambda id, n: f"toolu_{n + 1}")(messages)


@calls
def call_types_omitted(call):
    call.pop("type", None)


# --- decoration --------------------------------------------------------------------------------


@assistants
def name_added(message):
    """langchain js ("model"), MS agent-framework ("UnnamedAgent")."""
    message["name"] = "UnnamedAgent"


@assistants
def null_fields_added(message):
    """openai's .stream() helpers."""
    message |= dict.fromkeys(("refusal", "annotations", "audio", "function_call", "parsed"))
    for index, call in enumerate(message.get("tool_calls") or ()):
        call["index"] = index
        call["function"]["parsed_arguments"] = None


@assistants
def provider_fields_added(message):
    """litellm, mini-swe-agent."""
    message["provider_specific_fields"] = {"refusal": None}


def cache_control_added(messages):
    """opencode and others mark where a prompt cache should end."""
    messages = content_as_parts(messages)
    for message in messages:
        if isinstance(message.get("content"), str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        for part in message.get("content") or ():
            part["cache_control"] = {"type": "ephemeral"}
    return messages


def system_prompt_changed(messages):
    """Almost everyone: the date, the directory, the tools in words."""
    messages = [m for m in deepcopy(messages) if m["role"] not in {"system", "developer"}]
    return [{"role": "developer", "content": "Today is another day."}, *messages]


# --- results -----------------------------------------------------------------------------------


def results_repeated(messages):
    """gemini-cli after a resume: each one twice."""
    return [deepcopy(m) for m in messages for _ in range(2 if m["role"] == "tool" else 1)]


def results_repeated_in_a_row(messages):
    """The same, all of them and then all of them again."""
    altered, run = [], []
    for message in [*deepcopy(messages), None]:
        if message is not None and message["role"] == "tool":
            run.append(message)
            continue
        altered += [*run, *deepcopy(run), *([message] if message is not None else [])]
        run = []
    return altered


def results_as_parts(messages):
    """One text or several."""
    messages = deepcopy(messages)
    for message in messages:
        if message["role"] == "tool" and isinstance(message["content"], str):
            half = len(message["content"]) // 2
            pieces = message["content"][:half], message["content"][half:]
            message["content"] = [{"type": "text", "text": piece} for piece in pieces]
    return messages


def results_behind_the_users_words(messages):
    """Clients that keep results and text apart send them in either order."""
    altered, words = [], []
    for message in reversed(deepcopy(messages)):
        if message["role"] == "user":
            words.insert(0, message)
        elif message["role"] == "tool":
            altered.insert(0, message)
        else:
            altered[:0] = [message, *words]
            words = []
    return words + altered


def results_trimmed(messages):
    messages = deepcopy(messages)
    for message in messages:
        if message["role"] == "tool" and isinstance(message["content"], str):
            message["content"] = message["content"].strip()
    return messages


def users_words_as_parts(messages):
    messages = deepcopy(messages)
    for message in messages:
        if message["role"] == "user" and isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
    return messages


CHAT = {
    function.__name__: function
    for function in (
        reasoning_stripped,
        reasoning_renamed,
        reasoning_truncated,
        reasoning_trimmed,
        reasoning_emptied,
        reasoning_of_old_turns_dropped,
        reasoning_in_think_tags,
        reasoning_in_aiders_tags,
        signature_replaced,
        empty_content_is_null,
        empty_content_is_a_string,
        empty_content_is_a_list,
        empty_content_is_omitted,
        content_as_parts,
        content_as_annotated_parts,
        parts_as_content,
        text_trimmed,
        text_trimmed_in_javascript,
        text_padded,
        text_beside_calls_dropped,
        placeholder_beside_calls,
        arguments_compact,
        arguments_spaced,
        arguments_escaped,
        arguments_reordered,
        arguments_in_javascript,
        empty_arguments_are_omitted,
        ids_of_nine_letters,
        ids_scrubbed,
        ids_counted,
        call_types_omitted,
        name_added,
        null_fields_added,
        provider_fields_added,
        cache_control_added,
        system_prompt_changed,
        results_repeated,
        results_repeated_in_a_row,
        results_as_parts,
        results_behind_the_users_words,
        results_trimmed,
        users_words_as_parts,
    )
}
"""Alterations of the messages of a Chat Completions body."""


# --- the same in values, for every dialect -----------------------------------------------------


def outputs(change):
    """An alteration of the parts of an output: a function from part to a list of parts."""

    @wraps(change)
    def altered(turn):
        return replace(turn, output=tuple(new for part in turn.output for new in change(part)))

    return altered


@outputs
def thoughts_dropped(part):
    """litellm's Responses bridge, llama-index, cline; qwen-code drops redacted thinking."""
    return [] if isinstance(part, Thought) else [part]


@outputs
def thoughts_altered(part):
    """qwen-code trims thinking, kimi-code turns redacted thinking into an empty signed block."""
    return (
        [replace(part, raw='{"type":"thinking","thinking":""}')]
        if isinstance(part, Thought)
        else [part]
    )


def thoughts_last(turn):
    """Continue: the order of items is not kept."""
    thoughts = [part for part in turn.output if isinstance(part, Thought)]
    others = [part for part in turn.output if not isinstance(part, Thought)]
    return replace(turn, output=(*others, *thoughts))


@outputs
def item_ids_omitted(part):
    """opencode, kimi-cli, the AI SDK, langchain on Responses."""
    if isinstance(part, Call):
        return [replace(part, item="", raw="")]
    return [replace(part, id="", raw="")] if isinstance(part, Text | Thought) else [part]


@outputs
def call_ids_renamed(part):
    """opencode, open-interpreter."""
    return [replace(part, id="toolu_1")] if isinstance(part, Call) else [part]


@outputs
def call_arguments_reordered(part):
    """The AI SDK on Messages and Responses."""
    if isinstance(part, Call):
        value = json.loads(part.arguments or "{}")
        return [replace(part, arguments=json.dumps(in_javascript(backwards(value))))]
    return [part]


def text_without_its_ends(turn):
    """openhands on Responses, gemini-cli after a resume."""
    whole = "".join(part.text for part in turn.output if isinstance(part, Text)).strip()
    others = [part for part in turn.output if not isinstance(part, Text)]
    return replace(turn, output=(Text(text=whole), *others) if whole else tuple(others))


@outputs
def text_in_pieces(part):
    """Parts and strings are one thing."""
    if isinstance(part, Text):
        half = len(part.text) // 2
        return [Text(text=part.text[:half]), Text(text=part.text[half:])]
    return [part]


def message_beside_calls_dropped(turn):
    """agno on Responses."""
    if not turn.calls:
        return turn
    return replace(turn, output=tuple(p for p in turn.output if not isinstance(p, Text)))


def block_inserted_before_calls(turn):
    """litellm on Messages."""
    if not turn.calls:
        return turn
    filler = Text(text="[System: Empty message content sanitised to satisfy protocol]")
    return replace(turn, output=(filler, *turn.output))


def responses_repeated(turn):
    """gemini-cli after a resume."""
    results = [part for part in turn.input if isinstance(part, Result)]
    return replace(turn, input=(*turn.input, *results))


def results_apart(turn):
    """qwen-code after a resume: parallel results in two messages, the words between or behind."""
    results = [part for part in turn.input if isinstance(part, Result)]
    others = [part for part in turn.input if not isinstance(part, Result)]
    return replace(turn, input=(*results[:1], *others, *results[1:]))


def result_ids_omitted(turn):
    """google-genai: functionResponse without an id."""
    bare = [replace(p, call="", name="") if isinstance(p, Result) else p for p in turn.input]
    return replace(turn, input=tuple(bare))


TURNS = {
    function.__name__: function
    for function in (
        thoughts_dropped,
        thoughts_altered,
        thoughts_last,
        item_ids_omitted,
        call_ids_renamed,
        call_arguments_reordered,
        text_without_its_ends,
        text_in_pieces,
        message_beside_calls_dropped,
        block_inserted_before_calls,
        responses_repeated,
        results_apart,
        result_ids_omitted,
    )
}
"""Alterations of a turn as read by any dialect."""
