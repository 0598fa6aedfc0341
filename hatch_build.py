"""Makes the README that a package index shows: there, a link into the project leads nowhere.

A relative link becomes one to the project's repository, if `[project.urls]` names it as `Source`.
Until then it becomes the linked text, and a relative picture its description.
"""

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:)([^)\s]+)\)")


def package_readme(text: str, source: str = "") -> str:
    """The text of the README with links that work anywhere; `source` is the repository's URL."""

    def link(found: re.Match[str]) -> str:
        image, label, target = found.groups()
        if target.startswith("#"):  # a heading of the README itself
            return found[0]
        if source:
            return (
                f"{image}[{label}]({source.rstrip('/')}/{'raw' if image else 'blob'}/main/{target})"
            )
        return f"*{label}*" if image else label

    return _LINK.sub(link, text)


def get_metadata_hook() -> Any:
    """The hook, as hatchling asks for it; imported here because only a build has hatchling."""
    from hatchling.metadata.plugin.interface import MetadataHookInterface

    class PackageReadme(MetadataHookInterface):  # type: ignore[misc]
        """Sets the package's description."""

        def update(self, metadata: dict[str, Any]) -> None:
            readme = (Path(self.root) / "README.md").read_text("utf-8")
            text = package_readme(readme, metadata.get("urls", {}).get("Source", ""))
            metadata["readme"] = {"content-type": "text/markdown", "text": text}

    return PackageReadme
