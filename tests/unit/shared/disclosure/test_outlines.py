"""The points of an answer do not follow the order of a chunk's headings, list or table, however they are written."""

import pytest

from shared.disclosure.outlines import outlines_of
from tests.unit.shared.disclosure.asking import codes

_POINTS = ["Lamps wear out unseen.", "Ropes are left to chance.", "Hooks get no care at all."]
_LABELS = ["Lamps at night", "Ropes and knots", "Hooks"]


@pytest.mark.parametrize(
    "over",
    [
        "".join(f"## {label}\nSome of it is kept.\n" for label in _LABELS),
        "".join(f"- {label}\n" for label in _LABELS),
        "".join(f"{place}. {label}\n" for place, label in enumerate(_LABELS, 1)),
        "".join(f"* **{label}**: some of it\n" for label in _LABELS),
        "| What | Who |\n|---|---|\n" + "".join(f"| {label} | some |\n" for label in _LABELS),
    ],
)
def test_three_points_in_the_order_of_a_chunk_are_its_outline(over: str):
    def follows(points: list[str]) -> bool:
        return "structure" in codes("Owners drift.", over, observations=points)

    assert follows(_POINTS)
    assert follows([_POINTS[0], "Nobody answers.", *_POINTS[1:]])
    assert not follows(_POINTS[::-1])
    assert not follows(_POINTS[:2])


def test_the_clauses_of_a_sentence_and_all_fields_have_an_order_too():
    over = "".join(f"- {label}\n" for label in _LABELS)
    assert "structure" in codes("Lamps wear out, ropes are left to chance, hooks get no care.", over)
    assert "structure" in codes(_POINTS[0], over, risks=[_POINTS[1]], recommended_actions=[_POINTS[2]])
    assert "structure" not in codes("Hooks get no care, ropes are left to chance, lamps wear out.", over)


def test_blanks_hide_no_order():
    blanks = " " * 300
    text = "".join(
        f"{blanks}{sign}{blanks}{name}\n" for sign, name in (("-", "tide"), ("2.", "moor"), ("三、", "heath"))
    )
    rows = "".join(f"{blanks}|{blanks}{name}{blanks}| x |\n" for name in ("tide", "moor", "heath"))
    assert [len(outline) for outline in outlines_of(text)] == [3]
    assert outlines_of(rows) == outlines_of(text)
