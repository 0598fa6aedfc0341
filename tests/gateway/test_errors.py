"""Errors of the gateway itself, in the shape of the dialect."""

import httpx2
import pytest

from support.gateway_server import running, upstreams
from support.proxied import KEY
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.engine.routes import parse
from thoughtline.gateway.errors import unknown_upstream
from thoughtline.gateway.options import ProxyOptions

DIRECTORY = Directory(
    [Upstream(name=name, base_url=f"https://{name}") for name in ("deepseek", "openai")],
    simulated_models=("sim/deepseek", "sim/openai"),
)


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/v1/chat/completions", lambda e: e["error"]["message"]),
        ("/v1/messages", lambda e: (e["type"], e["error"]["type"])),
        ("/v1beta/models/gemini-3-pro:generateContent", lambda e: e["error"]["status"]),
    ],
)
def test_our_errors_have_the_shape_of_the_dialect(sims, path, shape):
    with running(upstreams(sims, "deepseek", "claude")) as gateway:
        reply = httpx2.post(
            gateway.url + "/u/nobody" + path, json={"messages": [], "contents": []}, headers=KEY
        )
    assert reply.status_code == 404
    assert shape(reply.json())
    assert "nobody" in reply.text and "deepseek" in reply.text


def test_a_model_nobody_serves_is_told_what_to_do(sims):
    with running(upstreams(sims, "deepseek", "claude")) as gateway:
        reply = httpx2.post(
            f"{gateway.url}/v1/chat/completions", json={"model": "zzz", "messages": []}, headers=KEY
        )
    assert reply.status_code == 404
    assert "/u/NAME" in reply.json()["error"]["message"]


def test_a_body_too_large_is_413(sims):
    with running(upstreams(sims, "deepseek"), options=ProxyOptions(max_body_bytes=1000)) as gateway:
        reply = httpx2.post(f"{gateway.url}/v1/chat/completions", content=b"x" * 2000, headers=KEY)
        chunked = httpx2.post(
            f"{gateway.url}/v1/chat/completions", content=iter([b"x" * 600] * 3), headers=KEY
        )
    assert reply.status_code == chunked.status_code == 413
    assert "max_body_bytes" in reply.text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("deepsek", "no upstream is called 'deepsek'; did you mean 'deepseek'?"),
        ("nope", "no upstream is called 'nope'; known: deepseek, openai, sim"),
    ],
)
def test_a_misspelt_upstream_gets_a_suggestion_that_is_near(name, says):
    error = unknown_upstream(parse("POST", f"/u/{name}/v1/messages"), "m", DIRECTORY)
    assert (error.status, error.message) == (404, says)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("sim/deepsek", "no simulated model is called 'sim/deepsek'; did you mean 'sim/deepseek'?"),
        ("sim/nope", "no simulated model is called 'sim/nope'; known: sim/deepseek, sim/openai"),
        ("deepsek-v4-pro", "did you mean a model of 'deepseek'?"),
        ("nope", "no upstream serves the model 'nope'; name one in the path (/u/NAME/v1/messages)"),
    ],
)
def test_a_misspelt_model_gets_one_too(model, says):
    error = unknown_upstream(parse("POST", "/v1/messages"), model, DIRECTORY)
    assert (error.status, error.code) == (404, "model_not_found")
    assert says in error.message


def test_simulated_providers_are_among_those_that_are_known():
    directory = Directory((), simulated_models=["sim/deepseek"])
    assert unknown_upstream(parse("POST", "/u/x/v1/messages"), "m", directory).message.endswith(
        "sim"
    )


def test_a_simulated_models_name_at_another_upstream_is_not_what_is_wrong():
    error = unknown_upstream(parse("POST", "/u/deepsek/v1/messages"), "sim/deepseek", DIRECTORY)
    assert error.message == "no upstream is called 'deepsek'; did you mean 'deepseek'?"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "the body is empty; expected a JSON object"),
        (b'{"model": "m", ', "line 1, column 16"),
        (b"[1]", "is JSON, but not an object"),
        (b"\xff\xfe{", "is not JSON in UTF-8"),
        (b"{}", "add a `model`, or name an upstream in the path (/u/NAME/v1/messages)"),
    ],
)
def test_a_body_that_says_nothing_is_told_why(body, says):
    error = unknown_upstream(parse("POST", "/v1/messages"), "", DIRECTORY, body)
    assert says in error.message
    assert (error.status, error.code) == (
        (404, "unknown_upstream") if body == b"{}" else (400, "invalid_json")
    )
