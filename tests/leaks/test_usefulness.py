"""Sheets hide which answer is of which grade, and marks are read back by the key."""

import json
from pathlib import Path

import pytest

from tests.leaks.usefulness import Marks, main, ratio, read_marks, spread, write_sheet

ANSWERS = [{"question": f"What of {n}?", "open": f"prose {n}", "strict": f"codes {n}"} for n in range(24)]


def test_a_sheet_tells_no_grade_and_its_orders_differ() -> None:
    sheet, key = write_sheet(ANSWERS, "seed")
    assert set(key) == {"open", "strict"}
    assert "open" not in sheet
    assert "strict" not in sheet
    for number, first in enumerate(key):
        told = sheet.split(f"## {number + 1}\n\n")[1]
        assert told.index(f"{'prose' if first == 'open' else 'codes'} {number}\n") < told.index("### B")
    assert write_sheet(ANSWERS, "another seed")[1] != key


def test_marks_are_given_to_the_grade_that_stood_there() -> None:
    assert read_marks("2 A 1 B 4\n\n1 A 5 B 3\n", ["open", "strict"]) == [Marks(5, 3), Marks(4, 1)]
    assert ratio([Marks(5, 3), Marks(4, 1)]) == pytest.approx(4 / 9)
    assert spread([Marks(5, 4)] * 24) == (0.8, 0.8)


@pytest.mark.parametrize("more", ["", "\n1 A 5 B 3", "\n3 A 1 B 1", "\n2 A 6 B 1", "\n2 A", "\nso"])
def test_marks_that_are_not_whole_are_refused(more: str) -> None:
    with pytest.raises(ValueError, match="mark"):
        read_marks(f"1 A 5 B 3{more}", ["open", "strict"])


@pytest.mark.parametrize(("of_strict", "code"), [(4, 0), (3, 1)])
def test_the_command_writes_sheets_and_scores_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], of_strict: int, code: int
) -> None:
    answers, sheet, key, judged = (tmp_path / name for name in ("answers", "sheet.md", "key", "judged"))
    answers.write_text("\n".join(map(json.dumps, ANSWERS)), encoding="utf-8")
    assert main(["sheets", str(answers), str(sheet), str(key)]) == 0
    orders = json.loads(key.read_text(encoding="utf-8"))
    marks = [(5, of_strict) if first == "open" else (of_strict, 5) for first in orders]
    judged.write_text("\n".join(f"{n} A {a} B {b}" for n, (a, b) in enumerate(marks, start=1)), encoding="utf-8")
    assert main(["score", str(key), str(judged)]) == code
    assert f"strict over open: {of_strict / 5:.2f}" in capsys.readouterr().out


def test_an_honest_analyst_answers_24_questions_in_both_grades(tmp_path: Path) -> None:
    answers, sheet, key = (tmp_path / name for name in ("answers", "sheet.md", "key"))
    assert main(["answers", str(answers)]) == 0
    read = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    assert len({answer["question"] for answer in read}) == 24
    assert all(answer["open"].count("\n") and answer["strict"].count("\n") for answer in read)
    assert main(["sheets", str(answers), str(sheet), str(key)]) == 0
