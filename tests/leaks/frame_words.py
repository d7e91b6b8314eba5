"""`python -m tests.leaks.frame_words`: write the lists of words in which honest answers are given.

They are the words of content, English ones as stems, of the honest replies of the sets, of harmless advice, of the demo
and of the typed findings: those that answers over `LEAST_SUPPORT` documents have, and those that fewer have. What the
lists do to answers that are not in them is measured by leaving a set out.
"""

import json
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import astuple
from itertools import product
from pathlib import Path
from typing import Any

from chat_shell.sealed.gate.codebook import read_shipped
from deploy.demo.topics import ANYTHING, TOPICS
from shared.disclosure.alignment import group_by_key
from shared.disclosure.source import content_of
from shared.models.safe_summary import LEAST_SUPPORT
from tests.leaks.corpus.reading import benign_summaries

SETS = ("first", "second", "third", "fourth", "fifth", "corpus", "demo")
_STRANGERS = Path(__file__).parent / "strangers"
_LISTS = Path(__file__).parents[2] / "shared/disclosure/lists"
_LANGUAGES = ("en", "zh")


def frame_words(sets: Collection[str] = SETS) -> dict[str, list[str]]:
    """Return by the name of its list each word of content of what honest answers say."""
    texts = (pair for name in sets for pair in _texts(name))
    words = group_by_key((word, document) for document, text in texts for word in content_of(text) if word.isalpha())
    phrases = (phrase for table in read_shipped().lists.values() for both in table.values() for phrase in both)
    shipped = {word for phrase in phrases for word in content_of(phrase)}
    usual = {word for word, documents in words.items() if len(set(documents)) >= LEAST_SUPPORT} | shipped
    return {"frame_common": sorted(usual), "frame_seldom": sorted(words.keys() - usual)}


def _texts(name: str) -> Iterator[tuple[str, str]]:
    """Yield each text of an honest answer with the document that it is about; advice is about one of its own."""
    if name == "corpus":
        for benign in benign_summaries():
            yield from ((benign.document, text) for text in _fields(benign.reply.model_dump(mode="json")))
    elif name == "demo":
        for topic, words in (
            (each.cues.pattern, words) for each in (*TOPICS.values(), ANYTHING) for words in each.words
        ):
            yield from ((topic, text) for text in astuple(words))
    elif name == "fifth":
        advice = (case for language in _LANGUAGES for case in _lines(name, f"advice_{language}"))
        yield from ((case["id"], case["text"]) for case in advice if case["expect"] == "pass")
    else:
        for language, field in product(_LANGUAGES, ("reply", "rewrite")):
            for case in _lines(name, f"honest_{language}_cases"):
                yield from ((name + case["document"], text) for text in _fields(json.loads(case.get(field, "{}"))))


def _fields(reply: dict[str, Any]) -> Iterable[str]:
    lists = (reply.get(name, ()) for name in ("observations", "risks", "recommended_actions"))
    return (reply.get("summary", ""), *(item for items in lists for item in items))


def _lines(of: str, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_STRANGERS / of / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    for name, words in frame_words(sys.argv[1:] or SETS).items():
        (_LISTS / f"{name}.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
