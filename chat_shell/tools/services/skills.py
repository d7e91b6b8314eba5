"""The tool that reads skills."""

from collections.abc import Awaitable, Callable
from typing import cast

from pydantic import BaseModel, ConfigDict, Field

from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.tools.domain.tool_calls import validate_arguments
from chat_shell.tools.ports.tools import ToolContext
from shared.models.execution import ServedTool
from shared.models.values import JsonObject
from shared.prompts.skills import NO_SUCH_FILE, NO_SUCH_SKILL, SKILL_TEXT

MAIN_FILE = "SKILL.md"

ReadSkillFile = Callable[[str, str], Awaitable[str | None]]
"""Gives the text of a file of a skill, of bounded length; None where there is none that may be read."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=64)
    file: str = Field(default=MAIN_FILE, max_length=512)


class ReadSkill:
    """Implements `ToolProvider` for the operator's skills: a conversation reads those that its definition names."""

    def __init__(self, read: ReadSkillFile, *, accepts_restricted: bool) -> None:
        self._read = read
        self._accepts_restricted = accepts_restricted

    @property
    def accepts_restricted(self) -> bool:
        """Whether the operator lets skills be read in restricted turns."""
        return self._accepts_restricted

    async def run(self, served: ServedTool, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Read a skill.

        Raises:
            ArgumentsRejected: the arguments are not valid; its message is sent to the model.
        """
        asked = validate_arguments(_Arguments, arguments)
        if asked.name not in _names_in(served):
            return ToolAnswer(text=NO_SUCH_SKILL + ", ".join(_names_in(served)), failed=True)
        text = await self._read(asked.name, asked.file)
        if text is None:
            return ToolAnswer(text=NO_SUCH_FILE, failed=True)
        return ToolAnswer(text=SKILL_TEXT.format(name=asked.name, file=asked.file, text=text))


def _names_in(served: ServedTool) -> tuple[str, ...]:
    """Return the skills that a conversation may read: those that its definition lists."""
    properties = cast("dict[str, JsonObject]", (served.definition.parameters or {}).get("properties", {}))
    return tuple(cast("list[str]", properties.get("name", {}).get("enum", [])))
