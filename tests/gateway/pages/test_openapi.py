"""Our own routes keep what `/openapi.json` promises, whatever they are asked."""

import asyncio
from urllib.parse import parse_qsl, urlsplit

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from stores.samples import turn
from support.built_gateway import TOKEN, BuiltGateway, configured
from thoughtline.gateway.settings import AccessSettings, Secret
from thoughtline.stores.base import INTERNAL_PREFIX

ACCESS = AccessSettings(admin_token=Secret(TOKEN), hosts=("testserver",))
BUILT = BuiltGateway(configured(access=ACCESS))
TURNS = [turn(f"s{n % 3}", f"t{n}", '"hm"', calls=tuple("ab"[: n % 3])) for n in range(9)]


async def alive(scope, receive, send):
    """The gateway for the length of all tests: a client must not start and stop it each time."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    if not await BUILT.inner.entries(limit=1):
        for batch in TURNS:
            await BUILT.inner.append(batch)
    await BUILT.app(scope, receive, send)


OURS = schemathesis.openapi.from_asgi("/openapi.json", alive).include(
    path_regex=r"^/($|health|ready|metrics|version|openapi|v1/models|api/(?!feed))"
)
NEGATIVE = checks.negative_data_rejection
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    NEGATIVE,
    checks.positive_data_acceptance,
]


@OURS.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_our_own_routes(case):
    answer = case.call(headers={"authorization": f"Bearer {TOKEN}"})
    sent = dict(parse_qsl(urlsplit(answer.request.url).query, keep_blank_values=True))
    vanished = set(case.query or {}) - set(
        sent
    )  # a list of nothing cannot be written in an address
    described = case.operation.definition.raw.get("parameters", ())
    may_be_empty = {one["name"] for one in described if one.get("allowEmptyValue")}
    unjudged = vanished or any(not sent.get(name, "1") for name in may_be_empty)
    case.validate_response(
        answer, checks=[one for one in CHECKS if not unjudged or one is not NEGATIVE]
    )


def test_they_were_all_asked():
    asked = {operation.ok().path for operation in OURS.get_all_operations()}
    assert {"/", "/ready", "/v1/models/{id}", "/api/cache/reasoning", "/api/sessions/{id}"} <= asked
    left = asyncio.run(BUILT.inner.sessions())
    assert len([one for one in left if not one.session.startswith(INTERNAL_PREFIX)]) <= 3
