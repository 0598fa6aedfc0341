"""Turns with a canary in everything that people say, and stores with keys."""

from stores.contract import A
from stores.samples import turn
from thoughtline.log.events import UserMessage, draft
from thoughtline.log.parts import Text
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, MasterKey
from thoughtline.stores.sqlite import SqliteStore

ONE, TWO = MasterKey("key-one", b"1" * 32), MasterKey("key-two", b"2" * 32)
CANARY = "canary-9f3a"


def keychain(*keys, **options):
    return Keychain(KeyRing(keys or [ONE]), **options)


def opened(path, chain=None):
    return SqliteStore(path, keychain=chain, poll=0.02)


def canaries(session="s", name="t1", key=A, **more):
    """A turn with a canary in everything that people say."""
    said = draft(UserMessage(parts=(Text(text=f"{CANARY} said"),)), id="said", parent=name, at=1.5)
    raw, calls = f'"{CANARY} thought"', (f"{CANARY}-call",)
    return turn(session, name, raw, keys=(key,), calls=calls, drafts=(said,), **more)


def raw(path):
    """All bytes of a store on disk, its write-ahead log included."""
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    assert files
    return b"".join(file.read_bytes() for file in files)
