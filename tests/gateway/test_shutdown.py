"""The end: no new work, and what runs may finish."""

from support.built_gateway import BuiltGateway


def test_not_ready_while_going_down():
    built = BuiltGateway()
    with built.client() as client:
        built.proxy.draining = True
        answer = client.get("/ready")
    assert (answer.status_code, answer.json()["reasons"]) == (503, ["the gateway is shutting down"])
