"""How many texts in twelve encodings are read right, refused with guesses, or taken for what they are not.

The texts are the first articles of the Universal Declaration of Human Rights, which no threshold was chosen by.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from backend.extraction.domain.media_types import CSV, EMAIL, HTML, TEXT
from backend.extraction.formats.cutting import ContentLimits, cut_file
from shared.errors import InvalidRequest

CHARACTERS = 200
STEP = 15

_LINES = Path(__file__).with_name("encoding_texts.jsonl").read_text(encoding="utf-8").splitlines()
TEXTS: dict[str, str] = {one["encoding"]: one["text"] for one in map(json.loads, _LINES)}
"""By encoding a text of its language."""

ALSO = {"euc_jp": "shift_jis", "koi8_r": "cp1251", "iso8859_2": "cp1250"}
"""By encoding another one, with the text of which it is tried, too."""


def print_encodings() -> None:
    """Print by encoding how many texts are read right, refused with guesses, refused, or taken for another one."""
    sums = Counter[str]()
    for encoding in (*TEXTS, *ALSO):
        counts = Counter(
            judge(passage, encoding, media_type)
            for passage in passages(TEXTS[ALSO.get(encoding, encoding)])
            for media_type in (TEXT, CSV, HTML, EMAIL)
        )
        sums += counts
        print(f"{encoding:10}", ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    print(
        f"{'all':10}", ", ".join(f"{count} {verdict} ({count / sums.total():.1%})" for verdict, count in sums.items())
    )


def passages(text: str) -> Iterator[str]:
    """Yield parts of a text."""
    for start in range(0, max(1, len(text) - CHARACTERS), STEP):
        yield text[start : start + CHARACTERS].strip()


def judge(passage: str, encoding: str, media_type: str) -> str:
    """Read a passage in an encoding that nobody tells, in a file of a kind, and say what came of it."""
    parts = [passage[place : place + 20].replace(",", " ") for place in range(0, len(passage), 20)]
    text = {
        TEXT: passage,
        CSV: "\n".join(f"{number},{part}" for number, part in enumerate(parts)),
        HTML: f"<html><body><p>{passage}</p></body></html>",
        EMAIL: f"Subject: x\nContent-Transfer-Encoding: 8bit\n\n{passage}",
    }[media_type]
    try:
        cut = cut_file(text.encode(encoding), media_type, ContentLimits())
    except InvalidRequest as refused:
        return "refused with guesses" if "may be" in refused.message else "refused"
    found = "".join("".join(piece for batch in cut.batches for _, piece, *_ in batch).split())
    wanted = ("".join(part.split()) for part in (parts if media_type == CSV else [passage]))
    return "right" if all(part in found for part in wanted) else "taken for another encoding"
