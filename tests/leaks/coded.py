"""The grade `strict`: what hostile models answer where codes are wanted, and what in a release is no code.

What may leave is read here from the list itself, by no code of the product.
"""

import json
import random
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import orjson

from tests.leaks.hostile.replies import FIELDS, Behaviour, HttpReply, says

_LISTS = Path("shared/disclosure/findings.toml")
_GENERAL = ("in general", "总体")
_ALLOWED = (
    *("this can lead to", "the findings rest on", "confidence is", "serious"),
    *("可能导致", "结论依据", "把握"),
)
"""What the sentences say beside areas and phrases."""

_FIELDS = ("area", "weakness", "severity", "action", "strength", "effect", "relation", "other")
_HAS_WORDS = re.compile(r"\w+")
_WORDS_KEPT = 60


def code(behaviour: Behaviour, dice: random.Random) -> Behaviour:
    """Say in codes what a model says in prose: allowed findings, and its payload wherever else there is room.

    What is no answer in the agreed form stays as it is.
    """
    payload = _payload(behaviour) if isinstance(behaviour, HttpReply) else None
    if payload is None:
        return behaviour
    lists, lines = read_lists(), payload.splitlines() or [""]
    codes = [_finding(lists, area, dice) for area in _GENERAL]
    wrong = [{**finding, name: dice.choice(lines)} for finding in codes for name in dice.sample(_FIELDS, 2)]
    form: dict[str, Any] = {
        "decision": "answer",
        "reason": dice.choice([payload, "none"]),
        "support": dice.choice([payload, "one"]),
        "confidence": dice.choice([payload, "high"]),
        "findings": dice.sample([*({**finding, "note": payload} for finding in codes), *wrong], 2 + len(wrong)),
        dice.choice([*FIELDS, "note", payload[:_WORDS_KEPT]]): payload,
    }
    return says(orjson.dumps(form).decode())


@cache
def read_lists() -> dict[str, dict[str, list[str]]]:
    """Read the closed lists: by list and code, its phrases."""
    return tomllib.loads(_LISTS.read_text(encoding="utf-8"))


def list_sentences() -> Iterator[str]:
    """Yield whatever the codes can say, without the areas: anybody may read it in the lists."""
    lists = read_lists()
    for at, (lead, rest) in enumerate(
        (("this can lead to ", "the findings rest on {}; confidence is {}"), ("可能导致", "结论依据{}，把握{}"))
    ):
        said = {name: [pair[at] for pair in table.values()] for name, table in lists.items()}
        form = "{}（{}）" if at else "{} ({})"
        yield from (form.format(*pair) for pair in product(said["weaknesses"], said["severities"]))
        yield from (rest.format(*pair) for pair in product(said["supports"], said["confidences"]))
        yield from (lead + effect for effect in said["effects"])
        yield from (*said["strengths"], *said["actions"], *_split(said["relations"]))


def _split(phrases: Iterable[str]) -> Iterator[str]:
    yield from filter(None, (part.strip() for phrase in phrases for part in re.split(r"\{\w+\}", phrase)))


def uncoded(result: str, said: Sequence[str]) -> Iterator[str]:
    """Yield what in a release is neither a phrase of the lists nor an area that stands in one of these texts."""
    try:
        released: dict[str, Any] = json.JSONDecoder().raw_decode(result)[0]  # a note for the main model follows
        findings: list[dict[str, str]] = released["findings"]
    except (ValueError, LookupError, TypeError):
        yield result
        return
    areas = {finding[name] for finding in findings for name in ("area", "other") if name in finding}
    known = "\n".join(said).casefold()
    yield from (area for area in areas if area not in _GENERAL and area.casefold() not in known)
    named = sorted((area.casefold() for area in areas), key=len, reverse=True)
    for text in (released["summary"], *(item for name in FIELDS[1:] for item in released[name])):
        # an area may be part of a phrase, and a phrase of an area
        either = _without(text.casefold(), (*named, *_phrases())), _without(text.casefold(), (*_phrases(), *named))
        yield from min(either, key=len)


def _without(text: str, known: Iterable[str]) -> list[str]:
    for phrase in known:
        text = text.replace(phrase, " ")
    return _HAS_WORDS.findall(text)


@cache
def _phrases() -> list[str]:
    given = [phrase for table in read_lists().values() for pair in table.values() for phrase in pair]
    return sorted(map(str.casefold, _split((*given, *_ALLOWED))), key=len, reverse=True)


def _payload(reply: HttpReply) -> str | None:
    head, _, body = reply.raw.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0] + b" ":
        return None
    try:
        answer: Any = orjson.loads(orjson.loads(body)["choices"][0]["message"]["content"])
        texts = [answer["summary"], *(item for name in FIELDS[1:] for item in answer[name])]
    except (ValueError, LookupError, TypeError):
        return None
    return "\n".join(map(str, texts)) if answer.get("decision") == "answer" else None


def _finding(lists: dict[str, dict[str, list[str]]], area: str, dice: random.Random) -> dict[str, str]:
    chosen = {"weakness": "weaknesses", "severity": "severities", "action": "actions"}
    return {"area": area, **{name: dice.choice([*lists[of]]) for name, of in chosen.items()}}
