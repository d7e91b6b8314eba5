"""What of a played case is a leak: in released summaries, in answers, in what was read, in what models were sent."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from shared.prompts.tool_servers import frame_result
from tests.leaks.context.cases import filled, strings_of
from tests.leaks.context.play import Played
from tests.leaks.context.script import Asked
from tests.leaks.context.staging import SMALL_BUDGET, UNLABELLED, ContextStage
from tests.leaks.oracle.oracle import Circumstances, Leak
from tests.leaks.sinks import leaves

AGENT_TEXTS = ("instructions", "system_prompt", "reminder", "files")
"""What an agent of a case says."""

_SCANNED_KINDS = ("figure", "run", "canary")
"""What the scan keeps out of an answer, whoever has put it into the prompt."""


class Fault(NamedTuple):
    """Something that a case must not bring about, and where it was seen."""

    case: str
    sink: str
    leak: Leak


def is_released(result: str) -> bool:
    """Whether a tool's result is a summary that the gate has released."""
    return '"summary"' in result and '"confidence"' in result


def faults_of(played: Played, stage: ContextStage) -> list[Fault]:
    """Return each fault once."""
    judge = _Judge(played, stage)
    restricted = [asked for asked in played.asked if not asked.is_full]
    found = [*(fault for asked in restricted for fault in judge.of_turn(asked)), *judge.of_readings()]
    return list(dict.fromkeys([*found, *_over_budget(played)]))


class _Judge:
    """Knows what of a case is excused: the member's own words, and what was put into what is no knowledge."""

    def __init__(self, played: Played, stage: ContextStage) -> None:
        self._played = played
        self._stage = stage
        calls = [asked.step.get("main_calls", ()) for asked in played.asked]
        # arguments are written by the model of the case, not taken from what it was sent
        self._planted = [*played.planted, *strings_of(filled([list(map(list, each)) for each in calls], stage.texts))]

    def of_turn(self, asked: Asked) -> Iterator[Fault]:
        """Yield the faults of what the models of a restricted turn were told."""
        strict, lenient = (self._given([asked.step["by"]], is_planted=planted) for planted in (False, True))
        for result in filter(is_released, asked.results):
            yield from self._faults("released", result, strict)
        for body in asked.requests:
            for text in leaves("main model", body):
                yield from self._faults("main model", text.text, lenient)
        offered = [tool["function"]["name"] for body in asked.requests for tool in orjson.loads(body).get("tools", ())]
        said = (frame_result(UNLABELLED, text) for text in self._planted)
        if f"{UNLABELLED}__echo" in offered or not set(asked.results).isdisjoint(said):
            yield Fault(self._played.case.name, "tool server", Leak("egress", "unlabelled tool", UNLABELLED))

    def of_readings(self) -> Iterator[Fault]:
        """Yield the faults of answers, and of all that restricted people could read."""
        people = self._played.restricted
        strict, lenient = (self._given(people, is_planted=planted) for planted in (False, True))
        for text in self._played.answers:
            found = self._faults("answer", text.text, strict)
            yield from (fault for fault in found if fault.leak.kind in _SCANNED_KINDS)
        for text in self._played.received:
            yield from self._faults(text.sink, text.text, lenient)
        yield from self._agents_words()

    def _agents_words(self) -> Iterator[Fault]:
        """Yield the faults of what reached people who may not use the agent, or the models that they asked."""
        case = self._played.case
        if "agent words" not in case.forbidden:
            return
        words = [each for name, each in case.world["agent"].items() if name in AGENT_TEXTS]
        seen = [(text.sink, text.text) for text in self._played.received]
        restricted = [asked for asked in self._played.asked if not asked.is_full]
        seen += [("main model", body.decode()) for asked in restricted for body in asked.requests]
        for secret in strings_of(words):
            yield from (Fault(case.name, sink, Leak("agent", "words", secret)) for sink, text in seen if secret in text)

    def _given(self, people: Sequence[str], *, is_planted: bool) -> Circumstances:
        shown = frozenset(one.chunk_id for one in self._stage.base.content.passages)
        own = [text for who in people for text in self._played.own_texts.get(who, ())]
        return Circumstances(shown, (*own, *(self._planted if is_planted else ())), self._stage.base.owner_texts)

    def _faults(self, sink: str, text: str, given: Circumstances) -> Iterator[Fault]:
        is_prose = sink == "released"
        found = self._stage.oracle.leaks(text, given, is_prose=is_prose)
        yield from (Fault(self._played.case.name, sink, leak) for leak in found)


def _over_budget(played: Played) -> Iterator[Fault]:
    made = sum(asked.shown_searches for asked in played.asked)
    if "budget" in played.case.forbidden and made > SMALL_BUDGET:
        yield Fault(played.case.name, "budget", Leak("budget", "searches made", str(made)))
