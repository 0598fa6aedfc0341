"""What `thoughtline doctor` says about sealing: whether it is on, and whether the keys fit."""

import os

from thoughtline.cli.doctor_checks import Diagnostic
from thoughtline.engine.folders import store_file
from thoughtline.errors import StoreError
from thoughtline.gateway.settings import Settings, mask
from thoughtline.stores import open_store
from thoughtline.stores.sealing import vault_of

OFF = (
    "what is stored is not encrypted; to seal it, run `thoughtline keys generate --file "
    'thoughtline.keys` and set `keys = "file:thoughtline.keys"` under [store]'
)


async def sealing(settings: Settings) -> list[Diagnostic]:
    """Look at the ring, and at what the store wants of it."""
    options = settings.store
    if options.url.startswith("memory:") or options.record == "off":
        return []
    if not options.keys:
        return [Diagnostic(about="sealing", text=OFF)]
    advice = "without its keys nothing in the store can be read, and nothing is written"
    try:
        return [await _compare(settings)]
    except StoreError as error:
        text = mask(str(error))
        return [Diagnostic(about="sealing", level="problem", text=text, advice=advice)]


async def _compare(settings: Settings) -> Diagnostic:
    from thoughtline.stores.sealing.administration import check_keys

    options = settings.store
    keychain = options.keychain(os.environ)
    assert keychain is not None  # noqa: S101 (there are keys)
    ids = ", ".join(keychain.ring.ids)
    file = store_file(options.url)
    if file is not None and not file.exists():
        return Diagnostic(about="sealing", text=f"what is stored will be sealed (keys: {ids})")
    store = open_store(options.url, keychain=keychain)
    try:
        state = await vault_of(store).seal_state()
        problems = await check_keys(vault_of(store), keychain.ring)
    finally:
        await store.close()
    if problems:
        text = "; ".join(problems)
        advice = "put it back into what `store.keys` names; `thoughtline keys check` tries again"
        return Diagnostic(about="sealing", level="problem", text=text, advice=advice)
    if not state.primary:
        text = f"nothing in the store is sealed yet (keys: {ids})"
        advice = "`thoughtline keys re-encrypt` seals what is there"
        return Diagnostic(about="sealing", level="note", text=text, advice=advice)
    if state.plain:
        text = "what is new is sealed, and some of what is older is plain"
        advice = "`thoughtline keys re-encrypt` seals it"
        return Diagnostic(about="sealing", level="note", text=text, advice=advice)
    return Diagnostic(about="sealing", text=f"what is stored is sealed with {state.primary}")
