"""The port to the operator's skills."""

from typing import Protocol

from shared.models.served_tools import SkillCard


class Skills(Protocol):
    """The skills, which are listed once and read whenever a model asks."""

    @property
    def cards(self) -> tuple[SkillCard, ...]:
        """All skills, by name."""
        ...

    async def read(self, name: str, file: str) -> str | None:
        """Return the text of a file of a skill; None where there is none that may be read.

        No path leads out of the folder of the skill, and no text is longer than its bound.
        """
        ...
