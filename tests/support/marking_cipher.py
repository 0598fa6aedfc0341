"""A cipher for tests: it hides content from a reader, and notices a value in another place."""

from thoughtline.errors import StoreError

_FLIP = bytes(byte ^ 0x55 for byte in range(256))


class MarkingCipher:
    """Writes where a value belongs in front of it, and the value with its bits flipped."""

    def seal(self, value, place, column):
        return repr((*place, column)).encode() + b"|" + value.translate(_FLIP)

    def open(self, value, place, column):
        mark, _, rest = value.partition(b"|")
        if mark != repr((*place, column)).encode():
            raise StoreError(f"a {column} of another row is at {place}")
        return rest.translate(_FLIP)

    def blind(self, tenant, keys):
        return [tenant.encode() + key.translate(_FLIP) for key in keys]

    def blind_word(self, tenant, word):
        return tenant.encode() + word.encode().translate(_FLIP)
