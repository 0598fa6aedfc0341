"""Several processes on one file, with no setting for it: none sends what another has erased."""

import httpx2
import pytest

from support.gateway_process import Process
from support.transports import KEY, body, grown
from thoughtline.transports import Transport


@pytest.fixture
def neighbour(gateway, tmp_path):
    root = gateway.sims.root("deepseek")
    process = Process(tmp_path / "other", root, store=tmp_path / "t.db")
    yield process
    process.kill()


def replayed(reply):
    return reply.headers["x-thoughtline-replay"]


def test_a_gateway_goes_on_where_another_one_ended(gateway, neighbour):
    _, messages = gateway.talk(2)
    reply, messages = neighbour.talk(2, messages)
    assert "restored=3; missed=0" in replayed(reply)
    reply, _ = gateway.talk(1, messages)
    assert "restored=4; missed=0" in replayed(reply)


@pytest.mark.parametrize("path", ["/api/cache/reasoning", "/api/tenants/{tenant}"])
def test_what_one_gateway_erases_another_does_not_send(gateway, neighbour, path):
    reply, messages = gateway.talk(3)
    assert "restored=2" in replayed(reply)
    entries = httpx2.get(neighbour.url + "/api/cache/reasoning").json()["entries"]
    place = path.format(tenant=entries[0]["tenant"])
    assert httpx2.delete(neighbour.url + place).status_code == 200
    assert "restored=0" in replayed(gateway.exchange(messages))


def test_what_a_gateway_erases_a_transport_does_not_send(gateway, tmp_path):
    url = gateway.sims.url("deepseek") + "/chat/completions"
    messages = [{"role": "user", "content": "mend it"}]
    mount = Transport(f"sqlite:///{tmp_path}/t.db", policy="deepseek")
    with httpx2.Client(transport=mount) as kept:
        for _ in range(3):
            reply = kept.post(url, json=body(messages), headers=KEY)
            messages = grown(messages, reply)
        assert "restored=2" in replayed(reply)
        assert httpx2.delete(gateway.url + "/api/cache/reasoning").status_code == 200
        assert "restored=0" in replayed(kept.post(url, json=body(messages), headers=KEY))
