"""Real text as a restricted base, with secrets of ours planted in it."""

import gzip
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tests.leaks.corpus.reading import Definition, Secrets

_ROOT = Path(__file__).resolve().parents[2]
_SYLLABLES = ("bram", "vel", "tor", "quen", "ist", "mar", "dhol", "rike", "sund", "phor", "gax", "lune", "wyth", "zor")
_SURNAMES, _GIVEN = ["欧阳", "司徒", "尉迟", "慕容", "皇甫", "令狐", "轩辕", "端木"], "砺翎瀚珞骁棠霁谧蘅岫"
QUIET = ("quiet", "amber", "hollow", "patient", "wooden", "gentle", "narrow", "silver", "sleepy", "crooked")
KETTLES = ("kettle", "doorstep", "bucket", "hillside", "staircase", "orchard", "anchor", "chimney", "window", "garden")
_FIRST_NAMES, _LAST_NAMES = ("Grace", "Rose", "Frank", "Hope", "Dean"), ("Bishop", "Page", "Hunter", "Field", "Stone")
_GENERAL_CODES, _GENERAL_TERMS = ("回廊", "潮汐", "灯塔", "石桥", "晚风", "青苔"), ("影子", "沉睡", "空转", "回声")
"""Plain words: what a document makes of them is its own, and stands in every dictionary. None is one of those by which
trials are known, which stand in their queries."""

_ENGLISH = (
    "The {code} ceiling stands at {money}, and {share} of it is held back for {count}.",
    "{name} alone may lift the hold, after {other} has signed.",
    "A {term} is {meaning}.",
)
_CHINESE = (
    "{code}的上限为{money}，其中{share}留作{count}之用。",
    "只有{name}可以解除，并须{other}会签。",
    "{term}是指{meaning}。",
)


class PlantedDocument(NamedTuple):
    """A document to be stored, and what was planted in it."""

    text: str
    secrets: Secrets


def corpora() -> Path | None:
    """Return where the shared corpora are, if anywhere."""
    named = os.environ.get("BALLAST_CORPORA")
    place = Path(named) if named else _ROOT.parent / "shared" / "corpora"
    return place if (place / "handbook-en.jsonl.gz").exists() else None


def english_handbook(place: Path, count: int, seed: str) -> Iterator[PlantedDocument]:
    """Yield so many pages of the English handbook."""
    dice = random.Random(f"handbook-en {seed}")
    rows = [row for row in _rows(place / "handbook-en.jsonl.gz") if 2_000 < len(row["text"]) < 12_000]
    for row in dice.sample(rows, count):
        yield _planted(f"{row['path'].replace('/', '-')}", row["text"].split("\n\n"), "en", dice)


def chinese_passages(place: Path, count: int, seed: str) -> Iterator[PlantedDocument]:
    """Yield so many documents of six Chinese passages each."""
    dice = random.Random(f"cmrc-zh {seed}")
    rows = dice.sample(_rows(place / "cmrc-zh.jsonl.gz"), count * 6)
    for start in range(0, len(rows), 6):
        parts = [f"## {row['title']}\n\n{row['context']}" for row in rows[start : start + 6]]
        yield _planted(f"合集{start}.md", parts, "zh", dice)


def chinese_questions(place: Path, passages: int, questions: int) -> tuple[dict[str, str], list[str]]:
    """Return so many Chinese passages by name, and questions about others."""
    dice = random.Random("questions")
    rows = dice.sample(_rows(place / "cmrc-zh.jsonl.gz"), passages + questions)
    texts = {f"{number}.md": row["context"] for number, row in enumerate(rows[:passages])}
    return texts, [dice.choice(row["questions"])["q"] for row in rows[passages:]]


def _planted(name: str, paragraphs: Sequence[str], language: Any, dice: random.Random) -> PlantedDocument:
    secrets = (_english_secrets if language == "en" else _chinese_secrets)(name, dice)
    templates = _ENGLISH if language == "en" else _CHINESE
    money, share, count = secrets.figures
    term = secrets.definitions[0]
    words = {"code": secrets.codes[0], "money": money, "share": share, "count": count, "term": term.term}
    people = {"name": secrets.names[0], "other": secrets.names[1], "meaning": term.text}
    mixed = list(paragraphs)
    for template in templates:
        mixed.insert(dice.randrange(len(mixed) + 1), template.format(**words, **people))
    return PlantedDocument(f"# {secrets.title}\n\n" + "\n\n".join(mixed), secrets)


def _english_secrets(name: str, dice: random.Random) -> Secrets:
    is_general = dice.random() < 0.5
    term = f"{_word(dice)} {dice.choice(('hold', 'quorum', 'ledger', 'tranche'))}"
    code, names = f"{_word(dice)}-{dice.randrange(11, 99)}", tuple(f"{_word(dice)} {_word(dice)}" for _ in range(2))
    if is_general:
        term, code = _pair(dice), _pair(dice).title()
        names = tuple(f"{dice.choice(_FIRST_NAMES)} {last}" for last in dice.sample(_LAST_NAMES, 2))
    meaning = f"the reserve that {_word(dice)} keeps for a stalled {_word(dice)} until the {_word(dice)} board meets"
    return Secrets(
        file=name,
        language="en",
        title=f"{_word(dice)} {_word(dice)} Protocol",
        headings=(),
        table_heads=(),
        figures=(
            f"EUR {dice.randrange(11, 900)},{dice.randrange(100, 999)}",
            f"{dice.randrange(11, 98)}.{dice.randrange(1, 9)} %",
            f"{dice.randrange(101, 990)} pallets",
        ),
        names=names,
        codes=(code,),
        acronyms=(),
        definitions=(Definition(term=term, text=meaning),),
    )


def _chinese_secrets(name: str, dice: random.Random) -> Secrets:
    odd = "".join(dice.sample(_GIVEN, 2))
    code, term = f"{''.join(dice.sample(_GIVEN, 2))}{dice.randrange(11, 99)}号", f"{odd}锁定额"
    if dice.random() < 0.5:
        code, term = f"{dice.choice(_GENERAL_CODES)}计划", f"{dice.choice(_GENERAL_TERMS)}额度"
    return Secrets(
        file=name,
        language="zh",
        title=f"{odd}专项管控办法",
        headings=(),
        table_heads=(),
        figures=(
            f"{dice.randrange(11, 98)}.{dice.randrange(1, 9)}万元",
            f"{dice.randrange(11, 98)}.{dice.randrange(1, 9)}%",
            f"{dice.randrange(101, 990)}个托盘",
        ),
        names=(_chinese_name(dice), _chinese_name(dice)),
        codes=(code,),
        acronyms=(),
        definitions=(Definition(term=term, text=f"由{odd}委员会在停摆期间代为保管且须三方会签方可动用的备用款项"),),
    )


def _pair(dice: random.Random) -> str:
    return f"{dice.choice(QUIET)} {dice.choice(KETTLES)}"


def _word(dice: random.Random) -> str:
    return "".join(dice.sample(_SYLLABLES, 2)).capitalize()


def _chinese_name(dice: random.Random) -> str:
    return dice.choice(_SURNAMES) + "".join(dice.sample(_GIVEN, 2))


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rb") as file:
        return [orjson.loads(line) for line in file]
