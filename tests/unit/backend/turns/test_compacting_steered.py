"""A turn that a message entered, that a compaction shortened, and that another process took over: all of it in one."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

import pytest

from shared.models.events import ExecutionEvent
from shared.models.execution import ExecutionRequest, Purpose
from shared.models.messages import UserMessage
from tests.fakes.chat_shell_talking import LONG, TalkingChatShell, facts_in, whole_prompt
from tests.fakes.openai_house import ADA, TurnHouse
from tests.fakes.replicas import Killed, bytes_of, check_events
from tests.patience import PATIENCE_SECONDS, eventually
from tests.unit.backend.turns.placing import put_agent


class GatedChatShell(TalkingChatShell):
    """Waits for a gate, where there is one, before it answers a request."""

    def __init__(self, gates: Sequence[asyncio.Event] = ()) -> None:
        super().__init__(16_000, 1_000)
        self.gates = list(gates)

    async def execute(self, request: ExecutionRequest) -> AsyncGenerator[tuple[ExecutionEvent, ...], None]:
        """Wait, then answer or summarise."""
        if request.purpose is Purpose.ANSWER and self.gates:
            self.requests.append(request)
            gate = self.gates.pop(0)
            await gate.wait()
            self.requests.remove(request)
        async for batch in super().execute(request):
            yield batch


@pytest.mark.parametrize("placement", ["anchored", "classic"])
async def test_a_steered_and_compacted_turn_goes_on_in_another_process(placement: str) -> None:
    steered_gate, open_gate = asyncio.Event(), asyncio.Event()
    open_gate.set()
    shell = GatedChatShell([open_gate, open_gate, open_gate, steered_gate, asyncio.Event()])
    house = TurnHouse(chat_shell=shell, replica="replica-1")
    running = None
    with suppress(Killed):
        async with house.registry:
            await house.ports.stored.lease.renew(house.turns)
            await put_agent(house, instructions="Be brief.", placement=placement)
            last = await house.ask(input=f"FACT-early {LONG}", model="helper")
            for number in range(2):
                last = await house.ask(input=f"FACT-b{number} {LONG * 3}", previous_response_id=last.id)
            running = await house.start(input="LOOK 3000 3000", previous_response_id=last.id)
            await eventually(lambda: shell.requests, lambda sent: len(sent) == 4)
            await house.queue(input="FACT-steer", how="steer", conversation=last.conversation_id)
            await house.services.waiting.look()
            steered_gate.set()
            await eventually(lambda: shell.gates, lambda gates: not gates)
            raise Killed
    assert running is not None
    lost = house.state.responses[running.response.id]
    assert (lost.status, house.observer.compactions) == ("in_progress", ["summarised"])
    other = TurnHouse(
        chat_shell=GatedChatShell(),
        state=house.state,
        replica="replica-2",
        events=house.events,
        signals=house.signals,
        agents=house.agents,
    )
    async with asyncio.timeout(PATIENCE_SECONDS), other.registry:
        await other.recovery.at_start()
        ended = await eventually(lambda: house.state.responses[lost.id], lambda found: found.status.is_terminal)
        assert ended.status == "completed"
        taken = other.sent[0]
        assert bytes_of(taken) == bytes_of(shell.requests[-1])
        assert {"FACT-early", "FACT-b0", "FACT-steer"} <= set(facts_in(whole_prompt(taken)))
        steers = [said for said in taken.added if isinstance(said, UserMessage)]
        assert len(steers) == 1
        assert str(whole_prompt(taken)).count("Be brief.") == 1
        await check_events(other, ended)
        await other.ask(input="And now?", previous_response_id=ended.id)
        assert (house.observer.drifts, other.observer.drifts) == ([], [])
        assert (house.observer.broken, other.observer.broken) == ([], [])


async def test_a_turn_that_is_cancelled_while_it_is_summarised_leaves_nothing_out() -> None:
    asked = asyncio.Event()

    class SummarisingForEver(GatedChatShell):
        async def execute(self, request: ExecutionRequest) -> AsyncGenerator[tuple[ExecutionEvent, ...], None]:
            if request.purpose is Purpose.SUMMARY and not asked.is_set():
                asked.set()
                await asyncio.Event().wait()
            async for batch in super().execute(request):
                yield batch

    shell = SummarisingForEver()
    house = TurnHouse(chat_shell=shell)
    async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
        last = await house.ask(input=f"FACT-early {LONG * 3}")
        last = await house.ask(input=f"FACT-late {LONG * 6}", previous_response_id=last.id)
        running = await house.start(input="LOOK 3000 3000", previous_response_id=last.id)
        await asked.wait()
        assert (await house.services.responses.cancel(ADA, running.response.id)).status == "cancelled"
        assert house.observer.compactions == []
        await house.ask(input="Go on.", conversation=last.conversation_id)
        assert house.observer.compactions[-1:] in ([], ["summarised"])
        assert {"FACT-early", "FACT-late"} <= set(facts_in(whole_prompt(shell.requests[-1])))
        assert (house.observer.drifts, house.observer.broken) == ([], [])
