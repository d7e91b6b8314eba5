"""The port to the names that callers may give in the place of a model."""

from typing import NamedTuple, Protocol

from backend.identity.domain import Caller
from backend.openai_api.domain.presets import Preset
from backend.prompt.ports.agent_use import AgentUse


class OfferedPreset(NamedTuple):
    """A preset as the list of models shows it; `created_at` is in whole seconds since the Unix epoch."""

    name: str
    created_at: int


class PresetSource(AgentUse, Protocol):
    """The presets of callers; a preset that a caller may not use does not exist for them."""

    async def find(self, caller: Caller, name: str) -> Preset | None:
        """Return the preset of this name; None where there is none for this caller.

        Raises:
            Unavailable: the database is away.
        """
        ...

    async def list_offered(self, caller: Caller) -> tuple[OfferedPreset, ...]:
        """Return what the caller may use, by name.

        Raises:
            Unavailable: the database is away.
        """
        ...
