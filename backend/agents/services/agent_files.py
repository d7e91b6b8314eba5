"""The files of agents: whose they must be, and the file indexes in which their texts stand."""

from collections.abc import Sequence

from backend.agents.domain.agent import Agent, AgentDefinition
from backend.files.services import Files
from backend.identity.domain import Caller
from backend.knowledge.domain.file_indexes import file_index_of_agent
from backend.vector_stores.services.file_indexes import FileIndexes
from shared.errors import InvalidRequest


class AgentFiles:
    """Keeps the file index of an agent in step with its definition."""

    def __init__(self, files: Files, file_indexes: FileIndexes) -> None:
        self._files = files
        self._file_indexes = file_indexes

    async def check(self, caller: Caller, definition: AgentDefinition, kept: Sequence[str]) -> None:
        """Check that the files of a definition are the caller's, unless the agent has them already.

        Raises:
            InvalidRequest: one is named twice, or is neither; `param` names it.
        """
        seen = set[str]()
        for place, file_id in enumerate(definition.file_ids):
            param = f"file_ids[{place}]"
            if file_id in seen:
                raise InvalidRequest(f"The file '{file_id}' is named twice; name each once.", param=param)
            seen.add(file_id)
            if file_id not in kept and not await self._files.has(caller, file_id):
                message = f"You have no file '{file_id}'; upload it, and name it by its id."
                raise InvalidRequest(message, param=param)

    async def withdraw(self, agent: Agent, file_ids: Sequence[str]) -> None:
        """Take all but these files from an agent; its users find nothing of the others any more."""
        if agent.definition.file_ids:
            await self._file_indexes.keep_only(file_index_of_agent(agent.tenant, agent.id), file_ids)

    async def read(self, agent: Agent) -> None:
        """Have the files of an agent read in the background."""
        if agent.definition.file_ids:
            await self._file_indexes.put(file_index_of_agent(agent.tenant, agent.id), agent.definition.file_ids)

    async def settle(self, agent: Agent, file_ids: Sequence[str] | None) -> None:
        """Take all but these files from an agent, whatever was put meanwhile; None for an agent that was deleted."""
        if file_ids is None:
            await self.clear(agent)
        else:
            await self._file_indexes.keep_only(file_index_of_agent(agent.tenant, agent.id), file_ids)

    async def clear(self, agent: Agent) -> None:
        """Delete the texts of an agent's files."""
        await self._file_indexes.clear(file_index_of_agent(agent.tenant, agent.id))
