"""What a service finds out about its settings and surroundings, in lines that the command `ballast doctor` reads."""

import json
from dataclasses import asdict, dataclass


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


def checked_part_of(line: str) -> CheckedPart | None:
    """Return the part that a line is about; None where it is another line, such as one of the log."""
    try:
        return CheckedPart(**json.loads(line))
    except (ValueError, TypeError):
        return None
