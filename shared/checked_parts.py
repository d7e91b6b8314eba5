"""Findings of a service about its settings and surroundings, in lines that the command `ballast doctor` reads."""

import json
from collections.abc import AsyncIterable
from dataclasses import asdict, dataclass

from shared.environment import WrongSetting


@dataclass(frozen=True)
class CheckedPart:
    """A part that was looked at: what was found, and what mends it where `is_well` is false."""

    part: str
    is_well: bool
    found: str
    mend: str = ""

    @property
    def line(self) -> str:
        """Return it as a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)


def read_checked_part(line: str) -> CheckedPart | None:
    """Return the part that a line is about; None where it is another line, such as one of the log."""
    try:
        return CheckedPart(**json.loads(line))
    except (ValueError, TypeError):
        return None


async def print_parts(parts: AsyncIterable[CheckedPart]) -> None:
    """Print a line for each part, as soon as it is looked at.

    Raises:
        WrongSetting: a part is not as it has to be.
    """
    faults = 0
    async for part in parts:
        faults += not part.is_well
        print(part.line, flush=True)  # noqa: T201 -- the command's answer
    if faults:
        raise WrongSetting(f"{faults} of the parts above cannot be used as they are")
