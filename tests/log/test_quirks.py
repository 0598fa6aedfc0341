"""Quirks in the log: what earlier versions learned is still read."""

import msgspec

from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Need, Quirk, Scope

KEYS = (
    "need scope demands_all with_tools reads copies every_call lost off thinks nameless summaries "
    "nine bare all_turns unstored unsealed drops anywhere legal moves refused_asks"
)


def test_the_keys_that_it_is_stored_under():
    assert {field.encode_name for field in msgspec.structs.fields(Quirk)} == set(KEYS.split())


def test_only_what_differs_is_stored():
    assert msgspec.json.encode(Quirk()) == b"{}"
    stored = b'{"need":"required","scope":"calls","reads":["reasoning"],"nine":true,"drops":["x"]}'
    quirk = msgspec.json.decode(stored, type=Quirk)
    assert (quirk.need, quirk.scope, quirk.reads) == (
        Need.REQUIRED,
        Scope.CALLS,
        (Carrier.REASONING,),
    )
    assert msgspec.json.encode(quirk) == stored
