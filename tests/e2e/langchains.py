"""What the tests of LangChain's chat models share: its messages are the history."""

from e2e.ways import TOOLS, sdk


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
