"""Calls that a replica of chat_shell refuses because it goes are taken by another one, and nothing else is repeated."""

import asyncio
from contextlib import aclosing

import pytest

from backend.chat_shell_client.failover import PAUSE_SECONDS, TRIES, FailoverChatShell, RetriedStream
from backend.chat_shell_client.refusals import ReplicaDraining, error_of_report
from shared.errors import ChatShellUnavailable
from shared.models.events import ErrorReport, ExecutionEvent, ModelCallStarted
from tests.fakes.chat_shell_events import FINISHED
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_scripted import ScriptedChatShell

GOING = ReplicaDraining("The model runner is shutting down.")


def turn_of(client: ScriptedChatShell, slept: list[float]) -> RetriedStream:
    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    return FailoverChatShell(client, sleep).execute(full_request())


async def events_of(client: ScriptedChatShell, slept: list[float]) -> list[ExecutionEvent]:
    return [event async for batch in turn_of(client, slept) for event in batch]


async def test_a_refused_call_is_made_again_until_a_replica_takes_it() -> None:
    slept: list[float] = []
    client = ScriptedChatShell(*[[GOING]] * 3, [ModelCallStarted(call=1), FINISHED])
    assert await events_of(client, slept) == [ModelCallStarted(call=1), FINISHED]
    assert slept == [PAUSE_SECONDS] * 3


async def test_where_no_replica_takes_it_the_caller_hears_so() -> None:
    client, slept = ScriptedChatShell(*[[GOING]] * (TRIES + 1)), list[float]()
    with pytest.raises(ChatShellUnavailable) as refusal:
        await events_of(client, slept)
    assert type(refusal.value) is ChatShellUnavailable
    assert refusal.value.message == GOING.message
    assert len(client.requests) == TRIES


async def test_a_lost_connection_is_not_made_again() -> None:
    client = ScriptedChatShell([ChatShellUnavailable("The model runner broke off before the end of the turn.")])
    with pytest.raises(ChatShellUnavailable):
        await events_of(client, [])
    assert len(client.requests) == 1


async def test_behind_its_first_event_a_turn_is_not_begun_again() -> None:
    client = ScriptedChatShell([ModelCallStarted(call=1), GOING])
    with pytest.raises(ReplicaDraining):
        await events_of(client, [])
    assert len(client.requests) == 1


async def test_who_leaves_ends_the_turn_where_it_was_taken() -> None:
    client = ScriptedChatShell([GOING], [ModelCallStarted(call=1), asyncio.Event()])
    async with aclosing(turn_of(client, [])) as batches:
        assert await anext(batches) == (ModelCallStarted(call=1),)
        assert client.broken_off == 1
    assert client.broken_off == 2


@pytest.mark.parametrize(("kind", "raised"), [("Draining", ReplicaDraining), ("Unavailable", ChatShellUnavailable)])
def test_only_a_replica_that_goes_has_run_nothing(kind: str, raised: type[ChatShellUnavailable]) -> None:
    report = ErrorReport(type=kind, code="server_error", message="x", param=None, retryable=True)
    assert type(error_of_report(report)) is raised
