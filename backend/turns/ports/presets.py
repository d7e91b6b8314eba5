"""The port to the names that callers may give in the place of a model."""

from collections.abc import Collection
from typing import NamedTuple, Protocol

from backend.conversations.domain.placed_blocks import AgentRef
from backend.identity.domain import Caller
from backend.turns.domain.presets import Preset


class OfferedPreset(NamedTuple):
    """A preset as the list of models shows it; `created_at` is in whole seconds since the Unix epoch."""

    name: str
    created_at: int


class PresetSource(Protocol):
    """The presets of callers; a preset that a caller may not use does not exist for him."""

    async def find(self, caller: Caller, name: str) -> Preset | None:
        """Return the preset of this name; None where there is none for this caller.

        Raises:
            Unavailable: the database is away.
        """
        ...

    async def usable(self, caller: Caller, refs: Collection[AgentRef]) -> frozenset[AgentRef]:
        """Return those of these agents that are still there and that the caller may use.

        Raises:
            Unavailable: the database is away.
        """
        ...

    async def offered(self, caller: Caller) -> tuple[OfferedPreset, ...]:
        """Return what the caller may use, by name.

        Raises:
            Unavailable: the database is away.
        """
        ...
