"""A connection to the file, with the cipher of its content, and where damage is noted."""

import sqlite3

from thoughtline.stores.damage import DamagedSessions
from thoughtline.stores.row import PLAIN, Cipher


class Connection(sqlite3.Connection):
    """A connection that knows how content is sealed."""

    cipher: Cipher = PLAIN
    damage: DamagedSessions  # found by all connections to the file
