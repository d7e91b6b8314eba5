"""The gate on real text: how long a reply takes, what it blocks for nothing, what it lets through.

    python -m tests.bench.gate

English passages are another organisation's; the Chinese corpus has one kind of text only, so that nothing is said of
its false alarms. Times are the processor's, so that a busy machine changes little. The corpora are no part of the
project: they are read from `../shared/corpora` or `BALLAST_CORPORA`.
"""

import gzip
import json
import math
import os
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.protected import ProtectedChunk, ProtectedText
from shared.disclosure.english import is_function_word, stem_of
from shared.disclosure.folding import fold, han_only
from shared.disclosure.passages import index_passages, shares_passage
from shared.plain_text.normal_form import split_by_script, split_words
from tests.bench.figures import Figure, percentile, render_table, write_json

ROOT = Path(__file__).parents[2]
CORPORA = Path(os.environ.get("BALLAST_CORPORA") or ROOT.parent / "shared" / "corpora")
RESULTS = ROOT / "var" / "bench" / "gate.json"

CHUNK_CHARACTERS, CHUNKS, NEAREST = 1200, 24, 20
PASSAGES, PASSAGE_WORDS, TRIALS, TIMED = 600, 60, 300, 120
RUN_WORDS, RUN_CHARACTERS, REPLACED_LENGTH, REPLACED = 8, 12, 20, 4
SUMMARY_CHARACTERS, CANDIDATE_CHARACTERS, ITEM_CHARACTERS = 330, 600, 135
_MARKUP = re.compile(
    r"\A---\n(?:.*\n)*?---\n|<[^>]*>|\{[{%].*?[%}]\}|https?://\S+|\S+@\S+|^\[[^\]]*\]:.*$", re.MULTILINE
)
_LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")


def rows(name: str, field: str) -> list[str]:
    with gzip.open(CORPORA / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line)[field] for line in lines]


def chunks_of(text: str) -> Iterator[str]:
    """Cut a text at blank lines into pieces of a chunk's size."""
    piece = ""
    for paragraph in re.split(r"\n\s*\n", text):
        if piece and len(piece) + len(paragraph) > CHUNK_CHARACTERS:
            yield piece[:CHUNK_CHARACTERS]
            piece = ""
        piece += paragraph + "\n\n"
    if piece.strip():
        yield piece[:CHUNK_CHARACTERS]


def spaced(text: str) -> list[str]:
    return split_by_script(split_words(fold(text)))[0]


class Neighbours:
    """Finds the texts that share the rarest words with a passage."""

    def __init__(self, texts: Sequence[Sequence[str]]):
        self._count = len(texts)
        self._holders: defaultdict[str, list[int]] = defaultdict(list)
        for place, words in enumerate(texts):
            for word in set(words):
                self._holders[word].append(place)

    def nearest(self, words: Sequence[str], count: int) -> list[int]:
        scores: defaultdict[int, float] = defaultdict(float)
        for word in set(words):
            holders = self._holders.get(word, ())
            for place in holders:
                scores[place] += math.log(self._count / len(holders))
        return sorted(scores, key=lambda place: -scores[place])[:count]


def content(words: Sequence[str]) -> list[str]:
    return [stem_of(word) for word in words if not is_function_word(word)]


def pairs(text: str) -> list[str]:
    return [text[start : start + 2] for start in range(len(text) - 1)]


def replaced(words: Sequence[str], chance: random.Random) -> list[str]:
    """Replace a fifth of the words by others of the same script."""
    changed = list(words)
    for place in chance.sample(range(len(changed)), REPLACED):
        changed[place] = "囧" if len(changed[place]) == 1 and not changed[place].isascii() else "zebra"
    return changed


def english_figures(chance: random.Random) -> Iterator[Figure]:
    texts = [fold(chunk) for text in rows("handbook-en.jsonl.gz", "text") for chunk in chunks_of(text)]
    word_lists = [spaced(text) for text in texts]
    neighbours = Neighbours([content(words) for words in word_lists])
    benign = [spaced(_LINK.sub(r"\1", _MARKUP.sub(" ", text))) for text in rows("benign-en.jsonl.gz", "text")]
    cut = [
        words[at : at + PASSAGE_WORDS] for words in benign for at in range(0, len(words) - PASSAGE_WORDS, PASSAGE_WORDS)
    ]
    chosen = chance.sample(cut, PASSAGES)
    alarms = 0
    for words in chosen:
        near = neighbours.nearest(content(words), NEAREST)
        alarms += shares_passage(" ".join(words), index_passages([texts[place] for place in near], ""))
    yield Figure(f"English, {PASSAGE_WORDS}-word passages of others blocked", 100 * alarms / PASSAGES, "%", 3)
    long = [place for place, words in enumerate(word_lists) if len(words) > 3 * REPLACED_LENGTH]
    for length, change in ((RUN_WORDS, False), (REPLACED_LENGTH, True)):
        caught = 0
        for place in chance.choices(long, k=TRIALS):
            at = chance.randrange(len(word_lists[place]) - length)
            run = word_lists[place][at : at + length]
            near = neighbours.nearest(content(run), CHUNKS - 1)
            known = index_passages([texts[other] for other in dict.fromkeys((place, *near))], "")
            caught += shares_passage(" ".join(replaced(run, chance) if change else run), known)
        name = f"{length} words, a fifth replaced" if change else f"{length} words"
        yield Figure(f"English, {name}, caught", 100 * caught / TRIALS, "%", 97, at_least=True)
    candidates = [" ".join(words) for words in chosen]
    yield from timed("English", candidates, texts, lambda text: neighbours.nearest(content(spaced(text)), CHUNKS))


def chinese_figures(chance: random.Random) -> Iterator[Figure]:
    texts = [text[:CHUNK_CHARACTERS] for text in map(fold, rows("cmrc-zh.jsonl.gz", "context"))]
    characters = [han_only(text) for text in texts]
    neighbours = Neighbours([pairs(text) for text in characters])
    long = [place for place, text in enumerate(characters) if len(text) > 3 * REPLACED_LENGTH]
    for length, change in ((RUN_CHARACTERS, False), (REPLACED_LENGTH, True)):
        caught = 0
        for place in chance.choices(long, k=TRIALS):
            at = chance.randrange(len(characters[place]) - length)
            run = list(characters[place][at : at + length])
            caught += shares_passage(
                "".join(replaced(run, chance) if change else run), index_passages([texts[place]], "")
            )
        name = f"{length} characters, a fifth replaced" if change else f"{length} characters"
        yield Figure(f"Chinese, {name}, caught", 100 * caught / TRIALS, "%", 96, at_least=True)
    yield from timed("Chinese", texts, texts, lambda text: neighbours.nearest(pairs(han_only(text)), CHUNKS + 1)[1:])


def timed(
    language: str, candidates: Sequence[str], texts: Sequence[str], near: Callable[[str], list[int]]
) -> Iterator[Figure]:
    prepared: list[float] = []
    judged: list[float] = []
    for candidate in candidates[:TIMED]:
        shown = [protected(texts[place].ljust(CHUNK_CHARACTERS), place) for place in near(candidate)]
        started = time.process_time()
        case = prepare(shown, "", ["canarytoken"])
        between = time.process_time()
        judge(reply(candidate[:CANDIDATE_CHARACTERS]), case)
        prepared.append(between - started)
        judged.append(time.process_time() - between)
    bar = 30 if language == "English" else 60
    yield Figure(f"{language}, judging a reply, p95", 1000 * percentile(judged, 0.95), "ms", bar)
    yield Figure(f"{language}, preparing {CHUNKS} chunks, p50", 1000 * percentile(prepared, 0.5), "ms")


def protected(text: str, place: int) -> ProtectedChunk:
    def wrap(part: str) -> ProtectedText:
        return ProtectedText(part, "kb", f"chunk{place}")

    return ProtectedChunk("kb", f"chunk{place}", place, wrap(f"text {place}"), (), wrap(text), wrap(f"planted{place}"))


def reply(text: str) -> bytes:
    rest = text[SUMMARY_CHARACTERS:]
    items = [rest[at : at + ITEM_CHARACTERS] for at in range(0, len(rest), ITEM_CHARACTERS)]
    form = {
        "decision": "answer", "reason": "gap", "summary": text[:SUMMARY_CHARACTERS],
        "observations": [item for item in items if item.strip()], "risks": [], "recommended_actions": [],
        "confidence": "low",
    }  # fmt: skip
    return json.dumps(form, ensure_ascii=False).encode()


def main() -> None:
    if not CORPORA.exists():
        sys.stdout.write(f"gate: no corpora in {CORPORA}; nothing was measured (set BALLAST_CORPORA).\n")
        return
    measured = [*english_figures(random.Random(7)), *chinese_figures(random.Random(7))]
    write_json(measured, RESULTS)
    print(render_table(measured))


if __name__ == "__main__":
    main()
