"""Web pages from elsewhere: a browser on this machine must not lend them its owner's keys."""

import json

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from support.gateway_server import running, upstreams
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.settings import load
from thoughtline.testing import serving

ASKED = {"model": "deepseek-chat", "messages": [{"role": "user", "content": "hi"}]}
FOREIGN = [
    "https://evil.test",
    "http://evil.test:7337",  # its own name, pointed here
    "http://127.0.0.1.evil.test",
    "http://localhost@evil.test",
    "ftp://evil.test",  # what is no application's
    "blob://evil.test",
    "data://evil.test",
    "filesystem:https://evil.test",
    "web+evil://evil.test",  # any site may register such a one
    "javascript://evil.test",
    "://evil.test",
    "null",  # a sandbox
    "",
    "http://[",
]
LOCAL = [
    "http://localhost:3000",
    "http://127.0.0.1:7337",
    "https://app.localhost",
    "http://[::1]:80",
    "vscode-webview://0a1b",  # an application
    "app://obsidian.md",
    "tauri://localhost",
    "capacitor://localhost",
    "chrome-extension://abcdefghijklmnop",
    "moz-extension://0a1b",
    "file://",
]


@pytest.fixture(scope="module")
def gateway():
    with serving("deepseek", "openai") as sims:  # noqa: SIM117
        with running(upstreams(sims, "deepseek", "openai", key="sk-ours")) as gateway:
            gateway.sims = sims
            yield gateway


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("path", ["chat/completions", "embeddings"])
def test_a_page_from_elsewhere_is_refused(gateway, origin, path):
    before = len(gateway.sims["deepseek"].requests)
    url, packed = f"{gateway.url}/u/deepseek/v1/{path}", json.dumps(ASKED)
    plain = {"origin": origin, "content-type": "text/plain"}  # what needs no leave of ours
    answers = [
        httpx2.post(url, content=packed, headers=plain),
        httpx2.options(url, headers={"origin": origin, "access-control-request-method": "POST"}),
    ]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert answers[0].json()["error"]["code"] == "foreign_page"
    assert "access.origins" in answers[0].json()["error"]["message"]
    assert len(gateway.sims["deepseek"].requests) == before


@pytest.mark.parametrize("origin", [None, *LOCAL])
def test_pages_and_applications_of_this_machine_are_not(gateway, origin):
    sent = {"origin": origin} if origin else {}
    url = f"{gateway.url}/u/deepseek/v1/chat/completions"
    assert httpx2.post(url, json=ASKED, headers=sent).status_code == 200


async def test_nor_may_one_open_a_socket(gateway):
    """No browser asks anybody before it opens one, and the page reads all that comes."""
    url = gateway.url.replace("http", "ws") + "/u/openai/v1/responses"
    with pytest.raises(InvalidStatus) as refused:
        async with connect(url, origin="https://evil.test"):
            pass
    assert refused.value.response.status_code == 403
    async with connect(url, origin="http://localhost:3000"):
        pass


def test_who_shows_a_key_or_was_named_is_not_foreign():
    headers = [(b"origin", b"https://chat.test")]
    assert Auth(b"s").foreign_origin(headers) == "https://chat.test"
    assert not Auth(b"s", origins=["https://Chat.test/"]).foreign_origin(headers)
    assert not Auth(b"s", origins=["*"]).foreign_origin(headers)
    assert not Auth(b"s", clients={"a": "k"}).foreign_origin(headers)


@pytest.mark.parametrize(
    ("site", "mode", "admitted"),
    [
        (
            "cross-site",
            "no-cors",
            False,
        ),  # an image, a script: browsers send no `origin` with these
        ("cross-site", "cors", False),
        ("cross-site", "navigate", True),  # a link to the inspector
        ("same-origin", "cors", True),  # the inspector itself
        ("none", "navigate", True),  # typed by a person
        ("", "", True),  # no browser
    ],
)
def test_who_does_not_say_where_from(site, mode, admitted):
    said = {b"sec-fetch-site": site.encode(), b"sec-fetch-mode": mode.encode()}
    headers = [(b"host", b"127.0.0.1:7337"), *((k, v) for k, v in said.items() if v)]
    assert Auth(b"s").is_admin(headers, "127.0.0.1") is admitted
    assert bool(Auth(b"s").foreign_origin(headers)) is not admitted
    assert not Auth(b"s", origins=["*"]).foreign_origin(headers)


def test_it_is_a_setting(tmp_path):
    file = tmp_path / "thoughtline.toml"
    file.write_text('[access]\norigins = ["https://chat.test"]\n')
    assert load({}, {}, tmp_path).access.origins == ("https://chat.test",)
