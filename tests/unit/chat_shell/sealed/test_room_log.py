"""What the room's log lines are called and hold."""

from typing import Any

import structlog

from chat_shell.knowledge.telemetry.sealed_room import LoggingRoomObserver
from chat_shell.sealed.outcome import SealedSearchResult
from chat_shell.sealed.room import SealedRoom
from chat_shell.sealed.verdicts import Blocked
from shared.models.safe_summary import GateCode
from tests.fakes.safe_summaries import released
from tests.fakes.sealed_room import CANARY, SECRET, FakeGate, FakeSealedBackend, FakeSecondary, RoomStage

PHRASE = "zebrafish valve"


async def lines_of(*, log_requests: bool) -> list[dict[str, Any]]:
    stage = RoomStage(
        model=FakeSecondary((SECRET.encode(), b"good")),
        gate=FakeGate({SECRET.encode(): Blocked((GateCode.FIGURES,), 0, (PHRASE,))}),
    )
    stage.observer = LoggingRoomObserver(log_requests)  # type: ignore[assignment]
    assert isinstance(stage.room, SealedRoom)
    with structlog.testing.capture_logs() as lines:
        await stage.ask()
    return [dict(line) for line in lines]


async def test_events_have_the_promised_names_in_their_order():
    lines = await lines_of(log_requests=True)
    assert [line["event"] for line in lines] == [
        "Starting safe summary", "LLM_REQUEST", "LLM_RESPONSE", "LLM_REQUEST", "LLM_RESPONSE",
        "Persist HTTP request", "Persist HTTP response", "Safe summary completed",
    ]  # fmt: skip
    assert {line["purpose"] for line in lines if line["event"].startswith("LLM")} == {"safe_summary"}
    assert (lines[2]["reply_bytes"], lines[2]["decision"]) == (len(SECRET), "blocked")
    completed = lines[-1]
    assert (completed["decision"], completed["reason"], completed["gate_codes"]) == ("answer", "gap", ["figures"])
    assert completed["preview"] == "Ownership is unclear."
    started = lines[0]
    assert (started["chunks_found"], started["chunks_sent"], started["knowledge_bases"]) == (1, 1, ["kb_r"])


async def test_a_kept_result_is_told_by_its_last_line_alone():
    stage = RoomStage(backend=FakeSealedBackend(SealedSearchResult("s_1", released=released("Kept."))))
    stage.observer = LoggingRoomObserver(log_requests=True)  # type: ignore[assignment]
    with structlog.testing.capture_logs() as lines:
        await stage.ask()
    assert [(line["event"], line["preview"]) for line in lines] == [("Safe summary completed", "Kept.")]


async def test_requests_are_logged_only_where_they_are_asked_for():
    assert not [line for line in await lines_of(log_requests=False) if line["event"].startswith("LLM")]


async def test_no_line_holds_protected_text():
    shown = str(await lines_of(log_requests=True))
    assert f"[protected kb_r, {len(SECRET)} chars]" in shown
    assert "[1 phrases]" in shown
    assert PHRASE not in shown
    assert SECRET not in shown
    assert CANARY not in shown
