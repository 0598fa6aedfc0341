"""Requests that come packed: read where that is possible, and refused where it is not."""

import gzip
import json
import zlib

import pytest
import zstandard

from support.gateway import Answer, InProcessGateway, ScriptedWire
from thoughtline.gateway import bodies

SAID = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
PLAIN = json.dumps(SAID).encode()
PACKERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "ZSTD": zstandard.ZstdCompressor().compress,
}
STREAMED = zstandard.ZstdCompressor().compressobj()  # without the size in its head


async def post(encoding, body, path="/v1/chat/completions", **headers):
    wire = ScriptedWire(Answer(200, {"choices": [{"message": {"content": "ok"}}]}))
    head = {"content-encoding": encoding, **headers}
    return await InProcessGateway(wire).post(path, body, head), wire


@pytest.mark.parametrize("encoding", PACKERS)
async def test_what_is_packed_is_read_and_goes_on_as_it_came(encoding):
    packed = PACKERS[encoding](PLAIN)
    answer, wire = await post(encoding, packed)
    assert answer.status == 200 and answer.header("x-thoughtline-replay")  # it was read
    assert wire.sent[0].body == packed
    assert bodies.decompress(packed, encoding, 1 << 20) == PLAIN


def test_a_stream_without_its_size_is_read_too():
    packed = STREAMED.compress(PLAIN) + STREAMED.flush()
    assert bodies.decompress(packed, "zstd", 1 << 20) == PLAIN


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_a_bomb_is_too_large(encoding):
    packed = PACKERS[encoding](bytes(100_000))
    with pytest.raises(bodies.BodyTooLarge):
        bodies.decompress(packed, encoding, 50_000)


@pytest.mark.parametrize("encoding", ["br", "gzip, br"])
async def test_what_cannot_be_unpacked_is_refused_with_what_can(encoding):
    answer, wire = await post(encoding, b"whatever")
    assert (answer.status, wire.sent) == (415, [])
    assert "gzip, deflate, zstd" in answer.json["error"]["message"]


async def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(bodies, "_zstd", lambda: None)
    answer, _ = await post("zstd", PACKERS["zstd"](PLAIN))
    assert answer.status == 415
    assert "install `zstandard` beside Thoughtline" in answer.json["error"]["message"]


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "deflate"])
async def test_what_is_damaged_is_the_providers_to_refuse(encoding):
    answer, wire = await post(encoding, b"not packed at all")
    assert (answer.status, wire.sent[0].body) == (200, b"not packed at all")


async def test_what_has_no_history_passes_however_it_is_packed():
    answer, wire = await post("br", b"whatever", "/v1/embeddings")
    assert (answer.status, len(wire.sent)) == (200, 1)
    off = {"x-thoughtline-replay": "off"}
    answer, wire = await post("br", b"whatever", **off)
    assert (answer.status, len(wire.sent)) == (200, 1)
