"""The two models of a context case: each answers as the turn wants whose mark is the newest in its request."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from shared.prompts import knowledge_base as texts
from shared.prompts.safe_summary import REWRITE_PROMPT
from shared.prompts.summary import SUMMARY_INSTRUCTION
from tests.fakes.model_server import RecordedRequest, Reply, ScriptedCall
from tests.leaks.context.cases import Step, filled
from tests.leaks.hostile.replies import Behaviour, strict, summary
from tests.leaks.trials import CODE_WORDS

_MARK = re.compile(rf"ref ((?:{'|'.join(CODE_WORDS)}) (?:{'|'.join(CODE_WORDS)}))")
_DELTA = 40
_MOST = 6_000


@dataclass(eq=False)
class Asked:
    """A turn as it is played, and what the models saw of it; `is_full` says that its reader may read the base."""

    mark: str
    step: Step
    is_full: bool
    holds: bool = False
    requests: list[bytes] = field(default_factory=list[bytes])
    results: list[str] = field(default_factory=list[str])
    secondary_calls: int = 0
    shown_searches: int = 0


@dataclass
class Script:
    """All turns of a case by their marks; `texts` fill what the models say, `summary` is said to be a summary."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    current: Asked | None = None
    summary: str = "All is well."
    summaries: int = 0
    canaries: list[str] = field(default_factory=list[str])
    on_request: Callable[[Asked], None] = lambda _asked: None
    _number: int = 0

    def begin(self, texts: Mapping[str, str]) -> None:
        """Forget the case before."""
        self.texts, self.asked, self.current, self.summary, self.summaries = texts, {}, None, "All is well.", 0

    def new_turn(self, step: Step, *, is_full: bool) -> Asked:
        """Note a turn to come."""
        one, two = divmod(self._number, len(CODE_WORDS))
        self._number = (self._number + 1) % len(CODE_WORDS) ** 2
        asked = Asked(f"{CODE_WORDS[one]} {CODE_WORDS[two]}", step, is_full)
        self.asked[asked.mark] = asked
        return asked

    def main_answer(self, request: RecordedRequest) -> Reply:
        """Call what the turn wants called, then say what it wants said."""
        messages: list[dict[str, Any]] = request.json_body["messages"]
        asked = self._asked_in(request.body.decode())
        if asked is None:
            return Reply(text=("ok",))
        asked.requests.append(request.body)
        if SUMMARY_INSTRUCTION[:60] in str(messages[-1]["content"]):
            self.summaries += 1
            return Reply(text=(filled(self.summary, self._seen(messages, asked)),))
        results = _results_at_end(messages)
        asked.results += [result for result in results if result not in asked.results]
        calls = [] if results else self._calls(request.json_body, asked)
        if calls:
            return Reply(tool_calls=tuple(calls))
        if asked.step.get("fails") == "echo_prompt":
            return Reply(status=500, body=request.body.decode())
        said = filled(asked.step.get("main", "Well."), self._seen(messages, asked))[:_MOST] or "Nothing."
        holds, asked.holds = asked.holds, False
        deltas = tuple(said[at : at + _DELTA] for at in range(0, len(said), _DELTA))
        return Reply(text=("So. ", *deltas), hold_after=1 if holds else None)

    def secondary_answer(self, body: dict[str, Any]) -> Behaviour:
        """Say what the turn wants said, whatever is asked."""
        asked = self._asked_in("\n".join(message["content"] for message in body["messages"]))
        if asked is None:
            return strict(summary("") | {"decision": "refuse", "reason": "out_of_scope"})
        each = asked.step.get("secondary_each") or [asked.step.get("secondary", "{passage}")]
        said = filled(each[asked.secondary_calls % len(each)], self.texts)
        asked.secondary_calls += 1
        asked.shown_searches += REWRITE_PROMPT[:27] not in str(body["messages"][-1]["content"])
        return strict(summary(said[:400]))

    def _asked_in(self, text: str) -> Asked | None:
        marks = [mark for mark in _MARK.findall(text) if mark in self.asked]
        return self.asked[marks[-1]] if marks else self.current

    def _seen(self, messages: list[dict[str, Any]], asked: Asked) -> dict[str, str]:
        seen = "\n".join(str(message["content"]) for message in messages)
        released = asked.results[-1] if asked.results else ""
        return {**self.texts, "seen": seen[-_MOST:], "released": released}

    def _calls(self, body: dict[str, Any], asked: Asked) -> list[ScriptedCall]:
        offered = {tool["function"]["name"] for tool in body.get("tools", ())}
        wanted = [(name, arguments) for name, arguments in asked.step.get("main_calls", ())]
        if texts.KNOWLEDGE_BASE_SEARCH in offered and asked.step.get("searches", True):
            wanted.insert(0, (texts.KNOWLEDGE_BASE_SEARCH, {"query": f"weak places of a release ref {asked.mark}"}))
        given = self._seen(body["messages"], asked)
        return [
            ScriptedCall(
                name=name,
                arguments=orjson.dumps(filled(arguments, given)).decode(),
                call_id=f"call_{asked.mark.replace(' ', '_')}_{at}",
            )
            for at, (name, arguments) in enumerate(wanted)
        ]


def _results_at_end(messages: list[dict[str, Any]]) -> list[str]:
    results: list[str] = []
    for message in reversed(messages):
        if str(message["content"]).startswith("<system-reminder>"):
            continue
        if message["role"] != "tool":
            break
        results.append(str(message["content"]))
    return results[::-1]
