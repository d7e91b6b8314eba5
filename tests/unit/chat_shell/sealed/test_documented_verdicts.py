"""What docs/how-the-gate-decides.md shows is what the gate says: its examples, its figures, its table of lists."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from chat_shell.sealed.judge import answers
from shared.disclosure.languages import Language, language_of
from shared.disclosure.word_lists import lines
from tests.house.sources import ROOT

_PAGE = (ROOT / "docs" / "how-the-gate-decides.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LIST = re.compile(r"^\| `(\w+)` \|.*\| (\d+) \|$", re.MULTILINE)
_OF_A_LANGUAGE = 3


def blocks(kind: str) -> list[str]:
    return [text for found, text in _BLOCK.findall(_PAGE) if found == kind]


def examples() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each case of the page with the verdict that stands below it."""
    objects = [json.loads(text) for text in blocks("json")]
    return [(case, shown) for case, shown in pairwise(objects) if "reply" in case and "verdict" in shown]


def answer(case: object) -> dict[str, Any]:
    line = json.dumps(case, ensure_ascii=False).encode()
    return json.loads(json.dumps(next(answers([line]))))


@pytest.mark.parametrize(("case", "shown"), examples())
def test_a_documented_verdict_is_real(case: dict[str, Any], shown: dict[str, Any]):
    assert answer(case) == shown


def test_both_languages_have_examples_of_both_verdicts():
    verdicts = [(language_of(json.loads(case["reply"])["summary"]), shown["verdict"]) for case, shown in examples()]
    assert len(blocks("json")) == 2 * len(verdicts)
    for language in (Language.ENGLISH, Language.CHINESE):
        mine = [verdict for found, verdict in verdicts if found is language]
        assert len(mine) >= _OF_A_LANGUAGE
        assert set(mine) == {"released", "blocked"}


def test_an_error_reads_as_documented():
    shown = next(text for text in blocks("text") if "error" in text)
    assert answer({"documents": [], "query": "x", "reply": ""}) == json.loads(shown)


def test_the_capacity_is_what_the_shown_lines_print():
    [program] = blocks("python")
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout in blocks("text")


def test_the_lists_have_the_sizes_that_are_documented():
    documented = {name: int(count) for name, count in _LIST.findall(_PAGE)}
    files = {path.stem for path in (ROOT / "shared" / "disclosure" / "lists").glob("*.txt")}
    assert documented == {name: len(lines(name)) for name in files}
