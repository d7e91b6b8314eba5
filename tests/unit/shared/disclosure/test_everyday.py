"""The everyday part of a text: no name, no figure and no rare word is left."""

import pytest

from shared.disclosure.everyday import keep_everyday


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Does Ruth Calloway keep the keys?", "keep the keys?"),
        ("We pay Grace every week.", "We pay every week."),
        ("three zeolite tanks at KX-4471", "tanks at -"),
        ("the staff's Kubernetes plans aren't ready", "the staff's plans aren't ready"),
        ("夜班只靠王建国一人值守", "夜班只靠 一人值守"),
        ("The colour of the organisation", "The colour of the organisation"),
        ("", ""),
    ],
)
def test_names_figures_and_rare_words_are_left_out(text: str, kept: str) -> None:
    assert " ".join(keep_everyday(text).split()) == kept


def test_words_behind_a_rank_are_left_out() -> None:
    kept = keep_everyday("the kiln and 琥珀 of the training, 培训", 4_000)
    assert " ".join(kept.split()) == "the and of the training, 培训"
