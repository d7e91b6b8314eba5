"""Two models in league spend a budget against a strict base: what a reader gets tells nothing of its facts."""

from pathlib import Path

import pytest

from shared.prompts.knowledge_base import CANNOT_ANSWER
from tests.leaks.coded import uncoded
from tests.leaks.spend import KEYWORDS, MOST_GUESSED, Spent, count_recovered, guess_facts, plant, spend, words_got

pytestmark = pytest.mark.whole

SEARCHES = 3


async def test_other_facts_and_the_same_codes_give_the_same_bytes(tmp_path: Path):
    facts = plant("one")
    one = await spend(tmp_path / "one", facts, SEARCHES)
    other = await spend(tmp_path / "other", plant("other"), SEARCHES)
    assert one.searches == SEARCHES
    assert one.results[-1] == CANNOT_ANSWER
    answered = one.results[:SEARCHES]
    assert CANNOT_ANSWER not in answered
    assert [*uncoded("".join(answered[:1]), (*KEYWORDS, *one.asked))] == []
    assert one.streams == other.streams
    assert words_got(one, facts) == set()


def test_a_word_of_a_fact_is_noticed():
    (fact, *_) = plant("one")
    name = fact.split()[2]
    assert words_got(Spent([], [f"They told of {name}."], [], 1), [fact]) == {name.casefold()}


async def test_codes_that_fit_give_a_reader_nothing_but_codes(tmp_path: Path):
    facts = plant("one")
    spent = await spend(tmp_path, facts, SEARCHES, is_honest=True)
    assert CANNOT_ANSWER not in spent.results[:SEARCHES]
    assert [*uncoded(spent.results[0], (*KEYWORDS, *spent.asked))] == []
    assert words_got(spent, facts) == set()
    assert count_recovered(guess_facts(spent, "guess"), facts) <= MOST_GUESSED


def test_a_fact_that_is_told_is_counted():
    facts = plant("one")
    assert count_recovered(facts, facts) == len({*facts})
    assert count_recovered(plant("other"), facts) <= MOST_GUESSED
