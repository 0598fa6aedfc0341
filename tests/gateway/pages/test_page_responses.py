"""Responses of the gateway's own pages: JSON that is not cached, and errors in a known shape."""

import json

import pytest

from thoughtline.gateway.pages.cache import CacheStats
from thoughtline.gateway.pages.page import Json, client_address, error_response
from thoughtline.gateway.pages.status import Health


def test_json_is_neither_stored_nor_guessed_at():
    response = Json(Health(status="ok"), headers={"x-own": "1"})
    assert json.loads(response.body)["status"] == "ok"
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["x-own"] == "1"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, "not_found_error"), (503, "unavailable_error"), (418, "api_error")],
)
def test_an_error_has_the_shape_that_clients_read(status, kind):
    response = error_response(status, "why", "a_code", {"retry-after": "1"})
    assert json.loads(response.body) == {
        "error": {"message": "why", "type": kind, "code": "a_code"}
    }
    assert (response.status_code, response.headers["retry-after"]) == (status, "1")


def test_where_a_request_came_from():
    assert client_address({"client": ("10.0.0.1", 80)}) == "10.0.0.1"
    assert client_address({"client": None}) == client_address({}) == ""


def test_field_names_are_those_that_users_know():
    assert all("_" not in name for name in CacheStats.__struct_encode_fields__)
