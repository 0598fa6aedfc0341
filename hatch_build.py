"""Makes the README and the links that a package index shows: there, a relative link leads nowhere.

Where the project lives is said by whoever builds it (`SOURCE_URL=https://… uv build`), as the
release does. Then `[project.urls]` and every link and picture of the README point there, and its
command that installs has that address in place of REPOSITORY. Without it a relative link becomes
the linked text, and a relative picture its description.
"""

import os
import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:)([^)\s]+)\)")
_EXPLANATION = re.compile(r" \(REPOSITORY [^)]*\)")


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

    if source:
        text = _EXPLANATION.sub("", text).replace("REPOSITORY", source.rstrip("/"))
    return _LINK.sub(link, text)


def project_urls(source: str) -> dict[str, str]:
    """What a package index lists beside the README."""
    source = source.rstrip("/")
    pages = {
        "Documentation": "/blob/main/docs/index.md",
        "Changelog": "/blob/main/CHANGELOG.md",
        "Issues": "/issues",
        "Source": "",
    }
    return {name: source + path for name, path in pages.items()} if source else {}


def get_metadata_hook() -> Any:
    """The hook, as hatchling asks for it; imported here because only a build has hatchling."""
    from hatchling.metadata.plugin.interface import MetadataHookInterface

    class PackageMetadata(MetadataHookInterface):  # type: ignore[misc]
        """Sets the package's description and its links."""

        def update(self, metadata: dict[str, Any]) -> None:
            source = os.environ.get("SOURCE_URL", "")
            readme = (Path(self.root) / "README.md").read_text("utf-8")
            text = package_readme(readme, source)
            metadata["readme"] = {"content-type": "text/markdown", "text": text}
            metadata["urls"] = project_urls(source)

    return PackageMetadata
