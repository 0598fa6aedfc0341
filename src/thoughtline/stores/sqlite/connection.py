"""A connection to the file, with the cipher of its content."""

import sqlite3

from thoughtline.stores.row import PLAIN, Cipher


class Connection(sqlite3.Connection):
    """A connection that knows how content is sealed."""

    cipher: Cipher = PLAIN
