"""Agents as the presets that turns ask for."""

from collections.abc import Collection

from backend.agents.domain.agent import preset_of
from backend.agents.ports.agents import AgentStore
from backend.conversations.domain.placed_blocks import AgentRef
from backend.identity.domain import Caller
from backend.openai_api.domain.presets import Preset
from backend.turns.ports.presets import OfferedPreset


class AgentPresets:
    """Implements `PresetSource` with stored agents."""

    def __init__(self, store: AgentStore) -> None:
        self._store = store

    async def find(self, caller: Caller, name: str) -> Preset | None:
        """Return what an agent stands for, None where there is none that the caller may use."""
        found = next(iter(await self._store.find(caller.tenant, caller.user_id, [name])), None)
        return preset_of(found.agent) if found is not None and found.is_usable else None

    async def usable(self, caller: Caller, refs: Collection[AgentRef]) -> frozenset[AgentRef]:
        """Return those of these agents that are still there and that the caller may use."""
        found = await self._store.find(caller.tenant, caller.user_id, sorted({ref.name for ref in refs}))
        ids = {each.agent.id for each in found if each.is_usable}
        return frozenset(ref for ref in refs if ref.id in ids)

    async def list_offered(self, caller: Caller) -> tuple[OfferedPreset, ...]:
        """Return the agents that the caller may use, by name."""
        entries = await self._store.usable(caller.tenant, caller.user_id)
        return tuple(OfferedPreset(entry.name, int(entry.created_at.timestamp())) for entry in entries)
