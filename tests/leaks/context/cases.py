"""The hostile cases as values, and what the places of their texts are filled with."""

import base64
import random
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import orjson

from tests.leaks.bases import Base
from tests.leaks.corpus.reading import Secrets

DOCUMENT = "en/firmware-release.md"
SUMMARY_ROOM = 380
FILLER = "The weather by the sea is mild and the garden is quiet. "
_PLACE = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[a-z]{3,}")

Step = dict[str, Any]


class Case(NamedTuple):
    """A case: who is there with what (`world`), and the steps that are taken."""

    name: str
    kind: str
    attacker: str
    why: str
    world: Mapping[str, Any]
    turns: tuple[Step, ...]
    reads: tuple[str, ...]
    forbidden: tuple[str, ...]

    @property
    def members(self) -> tuple[str, ...]:
        """Who takes part in the conversation, its creator first."""
        named = self.world.get("members") or dict.fromkeys(step["by"] for step in self.turns if "by" in step)
        return tuple(named)


@cache
def context_cases() -> tuple[Case, ...]:
    """Return all cases in their order."""
    rows = orjson.loads((Path(__file__).parent / "cases.json").read_bytes())["cases"]
    return tuple(Case(**row | {name: tuple(row[name]) for name in ("turns", "reads", "forbidden")}) for row in rows)


def case_texts(base: Base, secrets: Secrets) -> dict[str, str]:
    """Return what stands for each place whose text is known before a case begins."""
    sentences = [sentence for passage in base.content.passages for sentence in passage.sentences]
    fitting = sorted((one for one in sentences if len(one) <= SUMMARY_ROOM), key=len, reverse=True)
    words = fitting[0].split()
    own = sorted({word for one in base.content.passages for word in _WORD.findall(one.text)})
    shuffled = random.Random(DOCUMENT).sample(words, len(words))
    half, third = len(words) // 2, -(-len(words) // 3)
    counted = " ".join(map(str, range(1, 401)))
    return {
        "passage": fitting[0],
        "half_one": " ".join(words[:half]),
        "half_two": " ".join(words[half:]),
        "first_half_words": " ".join(sorted(words[:half])),
        "shuffled_words": " ".join(shuffled),
        "base64": base64.b64encode(fitting[0].encode()).decode(),
        "dictionary": " ".join(own),
        "figures": ", ".join(secrets.figures),
        "counting": counted,
        "names": ", ".join(secrets.names),
        "person": secrets.names[0],
        "title": secrets.title,
        "term": secrets.definitions[0].term,
        "filler": FILLER * 20,
        "long_filler": FILLER * 700,
        "base": base.id,
        "document_id": next(iter(base.document_ids.values())),
        **{f"sentence_{at}": fitting[at] for at in range(6)},
        **{f"third_{at}": " ".join(words[at * third : (at + 1) * third]) for at in range(3)},
    }


def filled(value: Any, texts: Mapping[str, str]) -> Any:
    """Return a value with the places of its texts filled; an unknown place stays."""
    if isinstance(value, str):
        return _PLACE.sub(lambda found: texts.get(found[1], found[0]), value)
    if isinstance(value, dict):
        return {key: filled(item, texts) for key, item in cast(Step, value).items()}
    return [filled(item, texts) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def strings_of(value: Any) -> Iterable[str]:
    """Yield the strings of a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        inside = cast("list[Any]", value) if isinstance(value, list) else list(cast(Step, value).values())
        for item in inside:
            yield from strings_of(item)
