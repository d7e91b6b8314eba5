"""Building a request for a turn of an agent: project files and a long conversation, with tools of two tool servers."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from backend.agents.domain.agent import Agent, AgentDefinition
from backend.conversations.domain.conversation_log import Entry, EntryKind
from backend.conversations.domain.responses import NewTurn
from backend.conversations.sql.codec import conversation_parameters, entry_parameters, to_entries
from shared.models.execution import ServedTool, ToolDefinition
from shared.models.messages import AssistantMessage
from shared.models.served_tools import OfferedTools, ServerTools
from tests.bench.building import (
    BASE,
    ROUNDS,
    ForgetfulTurns,
    LongConversation,
    Receiver,
    Rows,
    long_conversation,
    prose,
)
from tests.bench.figures import Figure, percentile
from tests.fakes.attached_files import FakeText
from tests.fakes.openai_house import ADA, TurnHouse
from tests.unit.backend.turns.samples import NOW

GOAL_MILLISECONDS = 20
LOG_ENTRIES = 1_000
FILES, FILE_TOKENS = 10, 2_000
SERVERS, TOOLS_OF_SERVER = ("jira", "wiki"), 10
AGENT_ID = "agent_1"


class _NotedTurns(ForgetfulTurns):
    """Stores nothing, and remembers the turn that began last."""

    begun: NewTurn | None = None

    async def begin(self, turn: NewTurn) -> None:
        type(self).begun = turn


def agent_figures() -> list[Figure]:
    """Measure the turn that states the files of its agent, and one whose log has them already."""
    return [figure for language in ("English", "Chinese") for figure in asyncio.run(_figures_of(language))]


async def _figures_of(language: str) -> list[Figure]:
    rows = long_conversation(language, LOG_ENTRIES)
    first, begun = await _measured(rows, language)
    later, _ = await _measured(_continued(rows, begun), language)
    scale = f"{LOG_ENTRIES:,} entries, {FILES * FILE_TOKENS:,} tokens of project files, two tool servers, {language}"
    return [
        Figure(f"a turn of an agent, {scale}, p50", percentile(later, 0.5) * 1000, "ms", GOAL_MILLISECONDS),
        Figure(f". the first, which states the files, {language}, p50", percentile(first, 0.5) * 1000, "ms"),
    ]


async def _measured(rows: LongConversation, language: str) -> tuple[Sequence[float], NewTurn]:
    receiver = Receiver()
    receiver.offered = OfferedTools(servers=tuple(map(_server, SERVERS)), skills=())
    house = TurnHouse(chat_shell=receiver, turns_class=_NotedTurns, conversations_class=lambda _state: Rows(rows))
    await house.knowledge.create_base(BASE, ADA.user_id)
    file_ids = [f"file_{number}" for number in range(FILES)]
    for number, file_id in enumerate(file_ids):
        text = FakeText(f"{file_id}.md", prose(language, FILE_TOKENS, number))
        house.agent_files.stored[f"shelf_{AGENT_ID}", file_id] = text
    definition = AgentDefinition.model_validate(
        {
            "model": "demo",
            "instructions": prose(language, 300, 0),
            "file_ids": file_ids,
            "knowledge_base_ids": [BASE.id],
            "tools": [{"type": "mcp", "server_label": server} for server in SERVERS],
        }
    )
    agent = Agent(id=AGENT_ID, tenant=ADA.tenant, name="helper", created_at=NOW, definition=definition)
    assert await house.agents.create(agent, ADA.user_id, 1)
    seconds: list[float] = []
    asked: dict[str, Any] = {"input": "And tomorrow?", "conversation": rows.conversation["id"], "model": "helper"}
    async with house.registry:
        for _ in range(ROUNDS):
            began_at = time.perf_counter()
            await house.ask(**asked)
            seconds.append(receiver.arrived_at - began_at)
    assert _NotedTurns.begun is not None
    return seconds, _NotedTurns.begun


def _continued(rows: LongConversation, begun: NewTurn) -> LongConversation:
    """Return the conversation behind a turn, which was answered."""
    conversation_id = begun.conversation.id
    log = (*to_entries(conversation_id, rows.log), *begun.entries)
    answer = Entry(
        position=len(log),
        epoch=log[-1].epoch,
        turn_id=begun.response.id,
        kind=EntryKind.ASSISTANT,
        message=AssistantMessage(text="So it is."),
        created_at=NOW,
    )
    ended = {"running_response_id": None, "log_length": len(log) + 1}
    return LongConversation(
        conversation=conversation_parameters(begun.conversation.model_copy(update=ended)),
        log=entry_parameters(conversation_id, (*log, answer)),
        tokens=rows.tokens,
    )


def _server(name: str) -> ServerTools:
    schema: dict[str, Any] = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    tools = tuple(
        ServedTool(
            definition=ToolDefinition(
                name=f"{name}__tool_{number}", description="Find what was asked for.", parameters=schema, strict=None
            ),
            server=name,
            tool=f"tool_{number}",
            accepts_restricted=False,
        )
        for number in range(TOOLS_OF_SERVER)
    )
    return ServerTools(server=name, is_known=True, tools=tools)
