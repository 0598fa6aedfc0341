"""Tools: plain typed Python functions that a model may call.

    @tool(timeout=10)
    async def read_file(path: str) -> str:
        "Read a text file."

Any function will do without the decorator, too; its name, signature and docstring are the tool's.
`schemas` reads the signature, `permissions` decides whether a call may be made, and `execute`
makes the call.
"""

from thoughtline.agents.tools.permissions import Ask, Permission, Verdict
from thoughtline.agents.tools.toolbox import Tool, Toolbox, tool

__all__ = ["Ask", "Permission", "Tool", "Toolbox", "Verdict", "tool"]
