"""One invented chunk, one question, one reply: what the gate says of it."""

from typing import Any

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.verdicts import Blocked, Released, Verdict
from tests.unit.chat_shell.sealed.gate.planting import chunk, reply

ASKED, ASKED_CHINESE = "Where are we weak?", "哪里薄弱？"
SOURCE, SOURCE_CHINESE = "Some of it is kept.", "有的留着。"


def judged(said: str, over: str = SOURCE, asked: str = ASKED, **lists: list[str]) -> Verdict:
    changed: dict[str, Any] = dict(lists)
    return judge(reply(said, **changed), prepare([chunk(over, "a.md")], asked, []))


def released(said: str, over: str = SOURCE, asked: str = ASKED, **lists: list[str]) -> Released:
    verdict = judged(said, over, asked, **lists)
    assert isinstance(verdict, Released), verdict
    return verdict


def codes(said: str, over: str = SOURCE, asked: str = ASKED, **lists: list[str]) -> set[str]:
    """Return the codes that a reply fails; none when it is released."""
    return codes_of(judged(said, over, asked, **lists))


def codes_of(verdict: Verdict) -> set[str]:
    return {code.value for code in verdict.codes} if isinstance(verdict, Blocked) else set()


def of(word: str, over: str = SOURCE, asked: str = ASKED) -> set[str]:
    """Return the codes of a plain sentence that holds this word; Chinese where the word is."""
    if word.isascii():
        return codes(f"Practice hangs on {word} and little else.", over, asked)
    return codes(f"现有做法取决于{word}的安排。", over, ASKED_CHINESE if asked == ASKED else asked)


def phrases(said: str, over: str = SOURCE, asked: str = ASKED) -> tuple[str, ...]:
    """Return what a rewrite is told of."""
    verdict = judged(said, over, asked)
    return verdict.phrases if isinstance(verdict, Blocked) else ()
