"""What a path means, and where it goes."""

from urllib.parse import quote

import pytest

from thoughtline.engine.routes import climbs, parse, with_model


@pytest.mark.parametrize(
    ("path", "dialect", "upstream", "model", "stream"),
    [
        ("/v1/chat/completions", "chat", "", "", None),
        ("/u/deepseek/v1/chat/completions", "chat", "deepseek", "", None),
        ("/u/glm/chat/completions", "chat", "glm", "", None),
        ("/v1/responses", "responses", "", "", None),
        ("/v1/messages", "messages", "", "", None),
        ("/v1/messages/count_tokens", "messages", "", "", None),
        ("/v1/responses/input_tokens", "responses", "", "", None),
        ("/v1/responses/resp_1", "", "", "", None),
        ("/v1beta/models/gemini-3-pro:generateContent", "gemini", "", "gemini-3-pro", False),
        ("/v1beta/models/gemini-3-pro:streamGenerateContent", "gemini", "", "gemini-3-pro", True),
        ("/v1beta/models/gemini-3-pro:countTokens", "gemini", "", "gemini-3-pro", None),
        ("/v1/embeddings", "", "", "", None),
        ("/u/x/v1//chat/completions", "chat", "x", "", None),
        ("/u/x/v1/messages/", "messages", "x", "", None),
        ("/u/x", "", "x", "", None),
        ("/", "", "", "", None),
    ],
)
def test_paths(path, dialect, upstream, model, stream):
    route = parse("POST", path)
    assert (route.dialect, route.upstream, route.model, route.stream) == (
        dialect,
        upstream,
        model,
        stream,
    )
    assert parse("GET", path).dialect == ""
    assert route.counts is path.endswith(("count_tokens", "countTokens", "input_tokens"))


@pytest.mark.parametrize(
    ("path", "goes_on", "family"),
    [
        ("/u/x//v1///chat/completions/", "/v1/chat/completions", "chat"),
        ("/v1/messages/count_tokens", "/v1/messages/count_tokens", "messages"),
        ("/v1/messages/batches//x/", "/v1/messages/batches//x/", "messages"),
        ("/v1/responses/compact", "/v1/responses/compact", "responses"),
        ("/v1beta/models/m:countTokens", "/v1beta/models/m:countTokens", "gemini"),
        ("/v1beta/openai/models", "/v1beta/openai/models", "chat"),
        ("/v1/models", "/v1/models", ""),
        ("/v1/files//x/", "/v1/files//x/", ""),
    ],
)
def test_what_goes_on_and_whose_it_is(path, goes_on, family):
    route = parse("POST", path)
    assert (route.path, route.family) == (goes_on, family)


def test_a_path_goes_on_with_its_escapes():
    """Decoded, a part of a path could end it, or the request line."""
    route = parse("GET", "/u/my%20own/v1/files/a%2Fb%3Fc%20d")
    assert (route.upstream, route.path) == ("my own", "/v1/files/a%2Fb%3Fc%20d")


@pytest.mark.parametrize(
    ("path", "up"),
    [
        ("/v1/../admin", True),
        ("/..", True),
        ("/v1/%2e%2E/admin", True),
        ("/v1/.%2e/admin", True),
        ("/v1/..%2Fadmin", True),
        ("/v1/a%2f..%2fadmin", True),
        ("/v1/..%5cadmin", True),
        ("/v1/..\\admin", True),
        ("/v1/%252e%252e/admin", True),
        ("/v1/files/a..b", False),
        ("/v1/files/...", False),
        ("/v1/./chat/completions", False),
        ("/v1/models/gemini-2.5-pro:generateContent", False),
    ],
)
def test_a_path_that_goes_up_is_known(path, up):
    assert climbs(path) is up


@pytest.mark.parametrize(
    ("model", "read"),
    [("sim/gemini", "sim/gemini"), ("sim/gemini/gemini-3-pro", "sim/gemini/gemini-3-pro")],
)
def test_a_simulated_model_may_stand_in_a_path_with_its_slashes(model, read):
    route = parse("POST", f"/v1beta/models/{model}:streamGenerateContent")
    assert (route.dialect, route.model, route.stream) == ("gemini", read, True)


@pytest.mark.parametrize("model", ["qwen3:8b", "z-ai/glm-4.7:free", "a:b:c", "ft:gpt:org::id"])
@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent", "countTokens"])
def test_a_models_own_colons_stay_with_it(model, escaped, method):
    shown = quote(model, safe="") if escaped else model
    for path in (f"/v1beta/models/{shown}:{method}", f"/u/x/models/{shown}:{method}"):
        route = parse("POST", path)
        assert (route.dialect, route.model) == ("gemini", model)
        renamed = with_model(route, "new:name")
        assert parse("POST", renamed.path).model == renamed.model == "new:name"
        assert renamed.path.endswith(f":{method}")


@pytest.mark.parametrize("colon", [":", "%3A"])
def test_a_model_in_a_path_is_read_without_its_escapes(colon):
    path = f"/v1beta/models/sim%2Fgemini{colon}generateContent"
    route = parse("POST", path)
    assert (route.dialect, route.model, route.path) == ("gemini", "sim/gemini", path)
