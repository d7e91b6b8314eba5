"""Turns of agents, with project files and uploads, and what their prompts hold in letters."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from backend.agents.domain.agent import Agent, AgentDefinition
from backend.conversations.domain.conversation_log import EntryKind, newest_epoch_state, select_sent
from backend.conversations.domain.responses import StoredResponse
from backend.identity.domain import Caller
from backend.turns.domain.turn_origin import TurnStart
from backend.turns.services.turn_draft import AskedTurn, TurnDraft
from backend.turns.services.turn_drafting import TurnDrafting
from shared.models.events import FinishReason, MessagesAdded, ModelCallFinished, ModelCallStarted, SearchStarted
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from shared.prompts.message_order import TOOL_RESULT_ELIDED, messages_of_request, reminder_text, system_messages
from tests.fakes.chat_shell_scripted import USAGE, ScriptedChatShell, answer
from tests.fakes.openai_house import ADA, TurnHouse

REMINDER = reminder_text(("Cite.",))


@dataclass
class Uploads:
    """What the files of an agent and of messages say: those of the next turn are taken by it."""

    project_files: str = ""
    files: tuple[str, ...] = ()


@dataclass
class DraftingWithFiles(TurnDrafting):
    """Drafts turns, and puts files into them."""

    inner: TurnDrafting
    uploads: Uploads = field(default_factory=Uploads)

    async def draft(self, asked: AskedTurn, start: TurnStart, request_id: str) -> TurnDraft:
        draft = await self.inner.draft(asked, start, request_id)
        is_agents = draft.blocks.agent is not None
        added = {
            "project_files": self.uploads.project_files if is_agents else "",
            "files": self.uploads.files if draft.read.current is not None else (),
        }
        return replace(draft, blocks=draft.blocks.model_copy(update=added))


def uploads_of(house: TurnHouse) -> Uploads:
    """Have a house take files from the value that is returned."""
    drafting = DraftingWithFiles(house.prepare.drafting)
    start, lanes = house.starts_of(replace(house.prepare, drafting=drafting))
    house.services = replace(house.services, start_one=start, start_lanes=lanes)
    return drafting.uploads


@asynccontextmanager
async def agents_house(*scripts: Sequence[Any], **fields: Any) -> AsyncGenerator[tuple[TurnHouse, Uploads]]:
    """Open a house whose turns may have files."""
    house = TurnHouse(chat_shell=ScriptedChatShell(*scripts), **fields)
    uploads = uploads_of(house)
    async with house.registry:
        yield house, uploads


def definition(**fields: Any) -> AgentDefinition:
    """Define an agent."""
    return AgentDefinition.model_validate({"model": "demo-model", "instructions": "CA", **fields})


async def put_agent(house: TurnHouse, name: str = "helper", owner: Caller = ADA, **fields: Any) -> str:
    """Make an agent and return its id."""
    agent_id = f"agent_{name}_{house.clock.now().timestamp()}"
    agent = Agent(
        id=agent_id, tenant=owner.tenant, name=name, created_at=house.clock.now(), definition=definition(**fields)
    )
    assert await house.agents.create(agent, owner.user_id, 10)
    return agent.id


def searching(*names: str, said: str, reminder: str = REMINDER) -> list[Any]:
    """Script a turn with a search for each name, one after the other, and reminders behind the first."""
    script: list[Any] = []
    for number, name in enumerate(names, 1):
        call = ToolCall(call_id=name, name="knowledge_base_search", arguments="{}")
        script += [
            ModelCallStarted(call=number, reminder=reminder if number > 1 else ""),
            ModelCallFinished(call=number, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
            SearchStarted(call_id=name, queries=(name,)),
            MessagesAdded(
                messages=(
                    AssistantMessage(text="", tool_calls=(call,)),
                    ToolMessage(call_id=name, content=f"Found {name}."),
                )
            ),
        ]
    first, _, finished, *rest = answer(said)
    assert isinstance(first, ModelCallStarted)
    assert isinstance(finished, ModelCallFinished)
    last = len(names) + 1
    return [
        *script,
        ModelCallStarted(call=last, reminder=reminder if names else ""),
        finished.model_copy(update={"call": last}),
        *rest,
    ]


async def prompts_of(house: TurnHouse, response: StoredResponse, caller: Caller = ADA) -> list[dict[str, Any]]:
    """Return what `/prompts` shows of a turn."""
    shown: list[Any] = await house.read_prompts(caller, response.id)
    return shown


def letters(call: dict[str, Any]) -> str:
    """Write the messages of a call as letters."""
    return " ".join(_letter(message) for message in call["messages"])


_LETTERS = {
    "system": "S",
    "custom_instructions": "CA",
    "project_files": "P",
    "file": "F",
    "dynamic_context": "K",
    "notice": "N",
    "reminder": "R",
}


def _letter(message: dict[str, Any]) -> str:
    if message["kind"] == "assistant":
        return "TC" if message.get("tool_calls") else message["content"]
    if message["kind"] == "user":
        return str(message["content"]).partition("\n")[0]
    if message["kind"] == "tool_result":
        return "tr" if message["content"] == TOOL_RESULT_ELIDED else "TR"
    return _LETTERS[message["kind"]]


async def change_agent(house: TurnHouse, agent_id: str, **fields: Any) -> None:
    await house.agents.change(agent_id, definition(**fields))


def many(count: int) -> tuple[Any, ...]:
    return tuple(answer("Yes.") for _ in range(count))


def without_own_fields(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name not in ("kind", "position", "tokens", "reused")}


async def is_rebuilt(house: TurnHouse, response: StoredResponse) -> bool:
    """Say whether the stored rows of a turn hold its first request, read here without what makes requests."""
    plan: dict[str, Any] = orjson.loads(house.state.plans[response.id].plan or "")
    conversation = house.state.conversations[response.conversation_id]
    log = house.log_of(conversation.id)[: plan["input_end"]]
    reset = newest_epoch_state(log)
    sent = select_sent(log, reset)
    newest = max((at for at, entry in enumerate(sent) if entry.kind is EntryKind.USER), default=0)
    while newest and sent[newest - 1].kind in (EntryKind.FILE, EntryKind.DYNAMIC_CONTEXT):
        newest -= 1
    texts = house.state.texts.get(conversation.id, {})
    moved = [UserMessage(content=texts[block["digest"]]) for block in plan.get("moved", ())]
    said = [entry.message for entry in sent]
    stored = (*system_messages(conversation.settings.system_prompt(reset)), *said[:newest], *moved, *said[newest:])
    request = house.sent[-1]
    return (stored, plan.get("reminder", "")) == (messages_of_request(request), request.reminder)
