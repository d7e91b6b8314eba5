"""The operator's tool servers and skills as chat_shell offers them; conversations take what they use."""

import re

from shared.models.execution import ServedTool
from shared.models.values import Value

SKILLS_SERVER = "skills"
"""The name that stands for the operator's folder of skills where a tool names its server; no server may have it."""

SEPARATOR = "__"

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
"""What OpenAI's and Anthropic's names of functions may not hold; MCP's names of tools may also hold dots."""


def model_name(server: str, tool: str) -> str:
    """Return the name by which models call a tool: the server's and its own, in letters that all providers take.

    Skills are read by a tool of ours, whose name needs no server before it.
    """
    return tool if server == SKILLS_SERVER else f"{server}{SEPARATOR}{_NOT_IN_NAMES.sub('_', tool)}"


class ServerTools(Value):
    """The tools of one server, sorted by name.

    `is_known` is false where the server has not listed its tools since chat_shell was started.
    """

    server: str
    is_known: bool
    tools: tuple[ServedTool, ...]


class SkillCard(Value):
    """A skill as agents list it: its name, and what it is good for in one line."""

    name: str
    description: str
    accepts_restricted: bool


class OfferedTools(Value):
    """All servers and skills that the operator has configured, by name."""

    servers: tuple[ServerTools, ...]
    skills: tuple[SkillCard, ...]


NO_TOOLS = OfferedTools(servers=(), skills=())
