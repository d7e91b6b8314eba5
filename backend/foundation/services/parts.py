"""What a package adds to the process."""

from typing import NamedTuple

from backend.foundation.services.supervision import Step


class Loop(NamedTuple):
    """Work that is repeated beside the requests until this process drains, with a pause after each success."""

    task: str
    step: Step
    seconds_between: float = 0.0


class Part(NamedTuple):
    """What the routes of a package call, one object of each class, and what runs beside the requests."""

    services: tuple[object, ...]
    loops: tuple[Loop, ...] = ()
