"""Google's SDK and the Gemini API, as its users write it."""

import pytest

from e2e.ways import KEY, TOOLS, providers, schema, sdk

pytestmark = pytest.mark.filterwarnings("ignore")
GEMINI = providers("gemini")


def client(way):
    genai = sdk("google.genai")
    options = {"base_url": way.root}
    if (http := way.http()) is not None:
        options["httpx_client"] = http
    return genai.Client(
        api_key=KEY, vertexai=False, http_options=genai.types.HttpOptions(**options)
    )


def config(types):
    declared = [
        {"name": name, "description": tool.__doc__, "parameters_json_schema": schema(name)}
        for name, tool in TOOLS.items()
    ]
    return types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=declared)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        thinking_config=types.ThinkingConfig(include_thoughts=True),
    )


def results(types, content):
    return [
        types.Part.from_function_response(
            name=part.function_call.name,
            response={"result": TOOLS[part.function_call.name](**part.function_call.args)},
        )
        for part in content.parts
        if part.function_call
    ]


def converse(way, turn, keep=lambda content: content):
    types = sdk("google.genai").types
    contents = []
    for number in range(3):
        said = [types.Part.from_text(text=way.ask(number))]
        while said:
            contents.append(types.Content(role="user", parts=said))
            content = turn(contents, config(types))
            contents.append(keep(content))
            said = results(types, content)
    way.judge()


def seen(content):
    """What is shown: texts and calls, without thoughts and signatures."""
    types = sdk("google.genai").types
    shown = [part for part in content.parts if not part.thought]
    parts = [
        types.Part(function_call=part.function_call)
        if part.function_call
        else types.Part(text=part.text)
        for part in shown
        if part.function_call or part.text
    ]
    return types.Content(role="model", parts=parts)


@pytest.mark.parametrize("keep", [lambda content: content, seen], ids=["content", "seen"])
@pytest.mark.parametrize("name", GEMINI)
def test_generate_content(way, keep):
    genai = client(way)

    def turn(contents, configuration):
        reply = genai.models.generate_content(
            model=way.model, contents=contents, config=configuration
        )
        return reply.candidates[0].content

    converse(way, turn, keep)


@pytest.mark.parametrize("name", providers("gemini", tame=True))
def test_generate_content_stream(way):
    """Gathered by hand: every part of every chunk."""
    genai = client(way)

    def turn(contents, configuration):
        parts = [
            part
            for chunk in genai.models.generate_content_stream(
                model=way.model, contents=contents, config=configuration
            )
            for part in chunk.candidates[0].content.parts or ()
        ]
        return genai_types().Content(role="model", parts=parts)

    converse(way, turn, seen)


def genai_types():
    return sdk("google.genai").types


@pytest.mark.parametrize("name", GEMINI)
def test_chats(way):
    """The SDK keeps the history by itself."""
    genai = client(way)
    types = genai_types()
    chat = genai.chats.create(model=way.model, config=config(types))
    for number in range(3):
        said = [types.Part.from_text(text=way.ask(number))]
        while said:
            reply = chat.send_message(said)
            said = results(types, reply.candidates[0].content)
    way.judge()


@pytest.mark.parametrize("name", GEMINI)
def test_chats_with_automatic_calls(way):
    """The SDK runs the tools, too."""
    genai = client(way)
    types = genai_types()
    chat = genai.chats.create(
        model=way.model, config=types.GenerateContentConfig(tools=list(TOOLS.values()))
    )
    for number in range(3):
        chat.send_message(way.ask(number))
    way.judge()
