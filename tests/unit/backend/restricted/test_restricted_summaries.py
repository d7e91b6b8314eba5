"""Summaries of restricted turns: they pass the outgoing check, and carry the labels of all that they were made from."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from backend.conversations.domain.conversation_log import WITHHELD, Entry, EntryKind
from backend.foundation.domain.json_objects import result_of, scan_json
from backend.knowledge.domain.knowledge import MemberRole
from backend.restricted.domain.canaries import document_canary
from backend.turns.domain.input_requests import compact_request_cooperatively
from shared.errors import PermissionDenied
from shared.models.events import ExecutionEvent
from shared.models.execution import AccessMode, ExecutionRequest, Purpose
from shared.models.messages import UserMessage
from shared.models.values import JsonObject, objects_in
from shared.prompts.knowledge_base import FIGURE_WITHHELD
from shared.prompts.summary import COMPACTED, frame_summary
from tests.contract.knowledge_cases import make_base, put
from tests.fakes.chat_shell_talking import Talk, TalkingChatShell, answered, whole_prompt
from tests.fakes.openai_house import ADA, SECRET, TurnHouse

PASSAGE = "The escalation ladder begins with the duty engineer and ends with the vault keeper of the northern site."
LONG = "word " * 800
TOOLS = [{"type": "file_search", "vector_store_ids": ["kb_a"]}]


@asynccontextmanager
async def house_of(role: MemberRole, talk: Talk | None = None) -> AsyncGenerator[TurnHouse]:
    house = TurnHouse(chat_shell=TalkingChatShell(8_000, 1_000, talk))
    await house.knowledge.create_base(make_base("kb_a", tenant="default"), "bob")
    await house.knowledge.set_member("kb_a", "ada", role)
    await put(house.knowledge, "ladder.md", [PASSAGE])
    async with house.registry:
        yield house


def shell_of(house: TurnHouse) -> TalkingChatShell:
    assert isinstance(house.chat_shell, TalkingChatShell)
    return house.chat_shell


async def compacted(house: TurnHouse, **first: Any) -> str:
    """Ask until something is left out; return the conversation's id."""
    last = await house.ask(input=f"FACT-a {LONG}", **first)
    while not house.observer.compactions:
        last = await house.ask(input=LONG, previous_response_id=last.id)
    return last.conversation_id


async def carried(house: TurnHouse, response_id: str, **fields: Any) -> Sequence[JsonObject]:
    """Have a conversation compacted on request; return what its client carries."""
    asked = compact_request_cooperatively(scan_json(orjson.dumps({"previous_response_id": response_id, **fields})))
    return (await house.services.compact(ADA, result_of(asked), "req_1", asyncio.Event())).output


def summaries_in(log: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in log if entry.kind is EntryKind.SUMMARY]


def saying(text: str) -> Talk:
    def talk(request: ExecutionRequest) -> list[ExecutionEvent] | None:
        return answered(request, text) if request.purpose is Purpose.SUMMARY else None

    return talk


@pytest.mark.parametrize("text", [f"He learnt that {PASSAGE}", document_canary(SECRET, "doc_1")])
async def test_a_summary_that_repeats_the_base_is_not_kept(text: str) -> None:
    async with house_of(MemberRole.RESTRICTED_ANALYST, saying(text)) as house:
        conversation = await compacted(house, tools=TOOLS)
        assert house.observer.compactions == ["withheld"]
        assert summaries_in(house.log_of(conversation)) == []
        after = shell_of(house).answers[-1]
        assert UserMessage(content=COMPACTED) in after.history
        assert text not in str(whole_prompt(after))
        assert text not in str(house.state)


@pytest.mark.parametrize(
    ("said", "kept"),
    [(f"He learnt that {PASSAGE}", None), ("It costs 4,711 EUR.", f"It costs {FIGURE_WITHHELD}.")],
    ids=["base", "figure"],
)
async def test_a_summary_on_request_passes_the_same_check(said: str, kept: str | None) -> None:
    async with house_of(MemberRole.RESTRICTED_ANALYST, saying(said)) as house:
        first = await house.ask(input="FACT-a", tools=TOOLS)
        if kept is None:
            with pytest.raises(PermissionDenied):
                await carried(house, first.id)
            return
        after = await house.ask(input=[*await carried(house, first.id), {"role": "user", "content": "And?"}])
        named = [("kb_a", AccessMode.RESTRICTED), (first.id, AccessMode.RESTRICTED)]
        assert [(label.base_id, label.mode) for label in after.label] == named
        assert UserMessage(content=frame_summary(kept)) in shell_of(house).answers[-1].history


async def test_a_summary_on_request_of_notices_is_for_who_lost_the_base() -> None:
    async with house_of(MemberRole.READER, saying("He likes tea.")) as house:
        first = await house.ask(input="FACT-a", tools=TOOLS)
        await house.knowledge.remove_member("kb_a", "ada")
        await house.ask(input=[*await carried(house, first.id, tools=[]), {"role": "user", "content": "And?"}])
        assert "Well." not in str(shell_of(house).summaries[0].history)
        assert UserMessage(content=frame_summary("He likes tea.")) in shell_of(house).answers[-1].history


async def test_figures_of_a_restricted_summary_become_marks() -> None:
    async with house_of(MemberRole.RESTRICTED_ANALYST, saying("It costs 4,711 EUR.")) as house:
        conversation = await compacted(house, tools=TOOLS)
        (summary,) = summaries_in(house.log_of(conversation))
        assert summary.message == UserMessage(content=frame_summary(f"It costs {FIGURE_WITHHELD}."))


async def test_a_summary_is_withheld_with_what_it_was_made_from() -> None:
    async with house_of(MemberRole.READER, saying("The keeper is Ada Quist.")) as house:
        conversation = await compacted(house, tools=TOOLS)
        (summary,) = summaries_in(house.log_of(conversation))
        assert [(label.base_id, label.mode) for label in summary.label] == [("kb_a", AccessMode.FULL)]
        last = house.state.conversations[conversation].latest_response_id
        await house.knowledge.set_member("kb_a", "ada", MemberRole.RESTRICTED_ANALYST)
        response = await house.ask(input="And?", conversation=conversation, tools=TOOLS)
        request = shell_of(house).answers[-1]
        assert "Quist" not in str(request)
        assert request.history[0] == UserMessage(content=WITHHELD)
        for turn_id in (str(last), response.id):
            shown = await house.read_prompts(ADA, turn_id)
            assert "Quist" not in str(shown)
            assert all(objects_in(call["messages"]) for call in shown)
        assert house.observer.drifts == []


async def test_a_summary_of_notices_is_kept_for_who_lost_the_base() -> None:
    async with house_of(MemberRole.READER, saying("He likes tea.")) as house:
        last = await house.ask(input=f"FACT-a {LONG}", tools=TOOLS)
        await house.knowledge.remove_member("kb_a", "ada")
        while not house.observer.compactions:
            last = await house.ask(input=LONG, previous_response_id=last.id, tools=[])
        (summary,) = summaries_in(house.log_of(last.conversation_id))
        assert summary.label == ()
        for _ in range(2):
            last = await house.ask(input="And?", previous_response_id=last.id)
            assert shell_of(house).answers[-1].history[0] == UserMessage(content=frame_summary("He likes tea."))
        reasons = [reason for _, reason in house.observer.epochs]
        assert reasons == ["new_conversation", "access_changed", "compaction"]
        assert house.observer.drifts == []


async def test_a_later_summary_is_not_made_of_what_is_withheld() -> None:
    async with house_of(MemberRole.READER, saying("The keeper is Ada Quist.")) as house:
        conversation = await compacted(house, tools=TOOLS)
        await house.knowledge.set_member("kb_a", "ada", MemberRole.RESTRICTED_ANALYST)
        sent_before = len(shell_of(house).requests)
        for _ in range(8):
            await house.ask(input=LONG, conversation=conversation)
        assert len(house.observer.compactions) > 1
        assert "ladder begins" not in str(shell_of(house).requests[sent_before:])
        first, *later = shell_of(house).summaries
        assert later
        assert "Quist" not in str(later[0].history)
        assert first.knowledge.access_mode is AccessMode.FULL
