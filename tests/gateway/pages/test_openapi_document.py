"""The OpenAPI document names every page."""

import msgspec
import pytest

from support.built_gateway import BuiltGateway
from thoughtline.gateway.pages.openapi import document


def test_the_document_names_every_page_of_ours():
    built = BuiltGateway()
    with built.client() as client:
        described = client.get("/openapi.json").json()
    pages = built.app._pages._app.routes
    ours = {
        (route.path.replace(":path", ""), method)
        for route in pages
        for method in route.methods - {"HEAD"}
        if not route.path.startswith("/inspect")  # files for a browser
    }
    written = {
        (path, method.upper()) for path, item in described["paths"].items() for method in item
    }
    assert ours <= written


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1beta/models/{model}:generateContent",
        "/v1beta/models/{model}:streamGenerateContent",
        "/u/{upstream}/{path}",
    ],
)
def test_the_document_names_what_goes_to_providers(path):
    assert "post" in document([])["paths"][path]


def test_references_in_the_document_lead_somewhere():
    with BuiltGateway().client() as client:
        described = client.get("/openapi.json").json()
    text = msgspec.json.encode(described).decode()
    wanted = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert wanted
    assert wanted <= set(described["components"]["schemas"])
