"""What the tests of LangChain's chat models share: its messages are the history."""

from e2e.ways import KEY, TOOLS, providers, sdk

CHAT = providers("chat")
# In a stream these classes lose text that comes in parts, as Mistral's does: what is shown, too.
TEXTUAL = providers("chat", without={"mistral"})


def model(kind, way, **more):
    """A chat model of LangChain's that goes this way."""
    return kind(
        base_url=way.url,
        api_key=KEY,
        model=way.model,
        http_client=way.http(),
        max_retries=0,
        **more,
    )


def converse(way, model, ask):
    messages = sdk("langchain_core.messages")
    bound = model.bind_tools(list(TOOLS.values()))
    history = [messages.SystemMessage("Be brief.")]
    for number in range(3):
        history.append(messages.HumanMessage(way.ask(number)))
        while True:
            answer = ask(bound, history)
            history.append(answer)
            if not answer.tool_calls:
                break
            history += [
                messages.ToolMessage(TOOLS[call["name"]](**call["args"]), tool_call_id=call["id"])
                for call in answer.tool_calls
            ]
    way.judge()


def invoke(bound, history):
    return bound.invoke(history)


def stream(bound, history):
    whole = None
    for chunk in bound.stream(history):
        whole = chunk if whole is None else whole + chunk
    return whole
