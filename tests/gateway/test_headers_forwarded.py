"""Which headers go upstream, and which come back."""

import httpx2

from support.gateway_server import running, upstreams
from support.proxied import KEY, body, recording
from thoughtline.engine.endpoints import Upstream


def test_client_keys_never_leave(sims):
    ups = upstreams(sims, "deepseek", key="the-upstream-key")
    with running(ups, clients={"alice": "alice-key"}) as gateway:
        bad = httpx2.post(
            f"{gateway.url}/v1/chat/completions",
            json=body([]),
            headers={"authorization": "Bearer no"},
        )
        none = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body([]))
        good = httpx2.post(
            f"{gateway.url}/v1/chat/completions",
            json=body([{"role": "user", "content": "hi"}]),
            headers={"authorization": "Bearer alice-key"},
        )
    assert bad.status_code == none.status_code == 401
    assert good.status_code == 200
    sent = sims["deepseek"].requests[-1].request
    assert sent.headers["authorization"] == "Bearer the-upstream-key"
    assert "alice-key" not in str(sent.headers)


def test_client_keys_stay_here_also_where_the_upstream_has_none():
    with (
        recording() as (url, seen),
        running([Upstream(name="bare", base_url=url)], clients={"alice": "gate-key"}) as gateway,
    ):
        for shown in ({"authorization": "Bearer gate-key"}, {"x-goog-api-key": "gate-key"}, {}):
            query = "" if shown else "?key=gate-key"
            httpx2.post(
                f"{gateway.url}/u/bare/v1/chat/completions{query}", json=body([]), headers=shown
            )
    assert len(seen) == 3
    assert not any(b"gate-key" in request for request in seen)


def test_configured_headers_stand_in_the_place_of_the_clients():
    """A client cannot say something else beside them, and a host is not said twice."""
    configured = {"X-Team": "ours", "Authorization": "Basic ours", "Host": "front.test"}
    with recording() as (url, seen):  # noqa: SIM117
        with running([Upstream(name="bare", base_url=url, headers=configured)]) as gateway:
            sent = {"x-team": "theirs", "authorization": "Bearer theirs", "x-other": "kept"}
            httpx2.get(f"{gateway.url}/u/bare/v1/files", headers=sent)
    lines = seen[0].decode().lower().split("\r\n")
    for name, values in {
        "x-team": ["ours"],
        "authorization": ["basic ours"],
        "host": ["front.test"],
        "x-other": ["kept"],
    }.items():
        assert [line.partition(": ")[2] for line in lines if line.startswith(f"{name}:")] == values


def test_what_an_upstream_says_of_its_own_connection_stays_there():
    from thoughtline.gateway.headers import to_client

    came = [("connection", "close, X-Hop"), ("x-hop", "1"), ("x-request-id", "r"), ("te", "x")]
    assert to_client(came, [("x-ours", "1")]) == [(b"x-request-id", b"r"), (b"x-ours", b"1")]


def test_a_query_loses_its_key_and_nothing_else():
    with recording() as (url, seen):  # noqa: SIM117
        with running([Upstream(name="bare", base_url=url, key="sk-ours")]) as gateway:
            httpx2.get(f"{gateway.url}/u/bare/v1/files?a=&key=theirs&b=%20+c&alt=sse&d")
    assert seen[0].startswith(b"GET /v1/files?a=&b=%20+c&alt=sse&d HTTP/1.1\r\n")


def test_hop_by_hop_and_our_own_headers_stay_here(sims):
    with running(upstreams(sims, "deepseek")) as gateway:
        httpx2.post(
            f"{gateway.url}/v1/chat/completions",
            json=body([{"role": "user", "content": "hi"}]),
            headers={**KEY, "x-thoughtline-session": "mine", "te": "trailers", "x-custom": "kept"},
        )
    sent = sims["deepseek"].requests[-1].request.headers
    assert sent["x-custom"] == "kept"
    assert not {"x-thoughtline-session", "te", "keep-alive"} & set(sent)
