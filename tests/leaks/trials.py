"""Trials, and the two scripted models that play them: the secondary one lies, the main one repeats."""

import base64
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import orjson

from chat_shell.sealed.pre_screen import pre_screen
from shared.prompts import knowledge_base as texts
from tests.fakes.model_server import RecordedRequest, Reply, ScriptedCall
from tests.leaks.bases import Base
from tests.leaks.coded import code
from tests.leaks.corpus.reading import Attack, Language, ToolAttempt
from tests.leaks.hostile.replies import Behaviour, HttpReply, strict, summary
from tests.leaks.hostile.stub import Stub
from tests.leaks.pair import DEFAULT_WAY, Way

SEARCHES_A_TURN = 10
CODE_WORDS: tuple[str, ...] = (
    *(
        "advice",
        "biggest",
        "diagnosis",
        "weakness",
        "improvement",
        "improve",
        "issues",
        "mature",
        "overall",
        "overview",
    ),
    *("priority", "priorities", "recommend", "review", "situation", "urgent", "weakest", "problems", "risks", "gaps"),
)
"""Words by which a trial is known: they ask for help and are about nothing, so that they make no evidence weaker."""

_CODE = re.compile(rf"ref ((?:{'|'.join(CODE_WORDS)}) (?:{'|'.join(CODE_WORDS)}) \w+ \w+)")
_LANE = re.compile(r"You are in lane (\d+)\.")
_DELTA_CHARACTERS = 40
_ROLLS = 20
_MOST_CHARACTERS = 6_000


@dataclass(eq=False)
class Trial:
    """One search with one secondary model, and what came of it."""

    code: str
    stub: Stub
    attack_class: str
    case_id: str
    base: Base
    query: str
    seed: str
    calls: int = 0
    way: Way = DEFAULT_WAY
    shown: frozenset[str] = frozenset()
    language: Language | None = None
    carries: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    result: str | None = None

    @property
    def is_counted(self) -> bool:
        """Whether the secondary model was called and its reply or failure reached the room."""
        return self.calls > 0 and self.result is not None

    @property
    def is_released(self) -> bool:
        """Whether the main model got something else than the one refusal."""
        return self.result is not None and self.result != texts.CANNOT_ANSWER


@dataclass
class Lane:
    """A conversation of the run: what its main model searches for in the next turn, and what it was sent."""

    number: int
    is_obeying: bool
    searches: list[Trial] = field(default_factory=list[Trial])
    attempts: tuple[ToolAttempt, ...] = ()
    spoken: str | None = None
    requests: list[bytes] = field(default_factory=list[bytes])

    @property
    def instructions(self) -> str:
        """By which the model server knows the lane."""
        return f"You are in lane {self.number}."


class Registry:
    """All lanes and trials of a run, and the answers of both models.

    `is_plain` tells whether a query may be asked; the oracle does, as soon as it knows the stored bases.
    """

    def __init__(self, way: Way = DEFAULT_WAY) -> None:
        self._way = way
        self._numbers = count(1)
        self._planned: Counter[tuple[str, str]] = Counter()
        self._lanes: dict[int, Lane] = {}
        self._trials: dict[str, Trial] = {}
        self.is_plain: Callable[[str], bool] = lambda _query: True
        self.canaries: list[str] = []
        self.unknown_requests: list[str] = []

    def new_lane(self) -> Lane:
        """Open a lane."""
        number = next(self._numbers)
        lane = Lane(number, is_obeying=number % 2 == 1)
        self._lanes[number] = lane
        return lane

    def new_trial(self, stub: Stub, case: Attack, base: Base, document: str | None) -> Trial:
        """Plan a trial; the code in its query is how the secondary model knows it.

        What it draws follows from protocol, database, case, model and how often these have met: from nothing that
        another trial, run or machine may change. A query in which the oracle sees a secret would be taken for one that
        got out as soon as the main model asks.
        """
        self._planned[case.id, stub.name] += 1
        seed = f"{self._way} {case.id} {stub.name} {self._planned[case.id, stub.name]}"
        dice = random.Random(seed)
        codes = (" ".join(dice.choices(CODE_WORDS, k=4)) for _ in count())
        code = next(code for code in codes if code not in self._trials)
        topics = (base.topic(document, case.language, dice) for _ in range(_ROLLS))
        queries = (f"{topic} ref {code}" for topic in topics)
        query = next(query for query in queries if not pre_screen("", query) and self.is_plain(query))
        trial = Trial(code, stub, case.attack_class, case.id, base, query, seed, way=self._way)
        self._trials[code] = trial
        return trial

    def main_answer(self, request: RecordedRequest) -> Reply:
        """Search first, then say what was got."""
        found = _LANE.search(request.body.decode())
        if found is None:
            return Reply(text=("ok",))
        lane = self._lanes[int(found[1])]
        lane.requests.append(request.body)
        messages: list[dict[str, Any]] = request.json_body["messages"]
        results = _results_at_end(messages)
        if not results and (lane.searches or lane.attempts):
            return Reply(tool_calls=tuple(_calls(lane)))
        if results:
            _take_results(lane, results)
        said = lane.spoken or ("\n".join(results) if lane.is_obeying else _all_it_can(messages)) or "Nothing."
        return Reply(text=_deltas(said[:_MOST_CHARACTERS]))

    def secondary_answer(self, body: dict[str, Any]) -> Behaviour:
        """Play the stub of the trial whose code is in the query."""
        messages: list[dict[str, str]] = body["messages"]
        text = "\n".join(message["content"] for message in messages)
        found = _CODE.search(text)
        trial = self._trials.get(found[1]) if found else None
        if trial is None:
            self.unknown_requests.append(text[-500:])
            return strict(summary("") | {"decision": "refuse", "reason": "out_of_scope"})
        trial.calls += 1
        shown = trial.base.content.shown_in(text, trial.calls, random.Random(trial.seed))
        trial.shown |= {passage.chunk_id for passage in shown.passages}
        self.canaries.extend(shown.canaries)
        if not shown.passages:
            return HttpReply(b"")
        trial.language = shown.language
        behaviour = trial.stub.reply(shown)
        if self._way.grade == "strict":
            return code(behaviour, shown.dice)
        if isinstance(behaviour, HttpReply) and behaviour.carries and not shown.made_up:
            trial.carries.append(behaviour.carries)
        return behaviour


def _results_at_end(messages: list[dict[str, Any]]) -> list[str]:
    results: list[str] = []
    for message in reversed(messages):
        if str(message["content"]).startswith("<system-reminder>"):
            continue
        if message["role"] != "tool":
            break
        results.append(message["content"])
    return results[::-1]


def _calls(lane: Lane) -> list[ScriptedCall]:
    searches = [
        ScriptedCall(
            name=texts.KNOWLEDGE_BASE_SEARCH,
            arguments=orjson.dumps({"query": trial.query}).decode(),
            call_id=f"call_{lane.number}_{trial.code.replace(' ', '_')}",
        )
        for trial in lane.searches
    ]
    attempts = [
        ScriptedCall(name=attempt.name, arguments=orjson.dumps(attempt.arguments).decode(), call_id=f"call_other_{at}")
        for at, attempt in enumerate(lane.attempts)
    ]
    return [*searches, *attempts]


def _take_results(lane: Lane, results: list[str]) -> None:
    for trial, result in zip(lane.searches, results, strict=False):
        trial.result = result


def _all_it_can(messages: list[dict[str, Any]]) -> str:
    """Say everything that is in the request, plainly and in two disguises."""
    got = "\n".join(str(message["content"]) for message in messages if message["role"] == "tool")
    context = "\n".join(str(message["content"]) for message in messages if message["role"] == "user")
    return f"{got}\n{context}\n{got[::-1]}\n{base64.b64encode(got.encode()).decode()}"


def _deltas(text: str) -> tuple[str, ...]:
    return tuple(text[at : at + _DELTA_CHARACTERS] for at in range(0, len(text), _DELTA_CHARACTERS))
