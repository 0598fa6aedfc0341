"""The tools of `thoughtline chat`: looking at files, below one folder, and nothing else.

They only read, they do not leave the folder (not by `..`, nor by a link), and they do not read
more than a person would.
"""

from pathlib import Path

from thoughtline.tools import Tool, tool

MOST = 64 << 10  # bytes of a file
ENTRIES = 200


def reading_tools(root: Path) -> list[Tool]:
    """`read_file` and `list_dir` below this folder."""
    root = root.resolve()

    def inside(path: str) -> Path:
        found = (root / path).resolve()
        if not found.is_relative_to(root):
            raise PermissionError(f"{path!r} is outside of the folder that may be looked at")
        return found

    def read_file(path: str) -> str:
        """Read a text file.

        Args:
            path: where it is, relative to the working folder.
        """
        with inside(path).open("rb") as file:
            data = file.read(MOST + 1)
        if b"\0" in data:
            return "[a binary file, not shown]"
        text = data[:MOST].decode("utf-8", "replace")
        return f"{text}\n[cut: the first {MOST:,} bytes are shown]" if len(data) > MOST else text

    def list_dir(path: str = ".") -> str:
        """List a folder.

        Args:
            path: where it is, relative to the working folder.
        """
        names = sorted(
            f"{entry.name}/" if entry.is_dir() else entry.name for entry in inside(path).iterdir()
        )
        more = f"\n[and {len(names) - ENTRIES:,} more]" if len(names) > ENTRIES else ""
        return "\n".join(names[:ENTRIES]) + more or "(empty)"

    return [tool(read_file), tool(list_dir)]
