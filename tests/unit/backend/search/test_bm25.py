"""The ranking formula and the choice of words."""

from math import log

import pytest

from backend.search.domain.bm25 import (
    MAX_LOOKED_UP_TERMS,
    MAX_RANKED_TERMS,
    MIN_LEADING_POSTINGS,
    Scorer,
    Statistics,
    find_looked_up_terms,
    greatest_score,
    plan,
)


def statistics_of(chunk_counts: dict[str, int], chunk_count: int = 100_000) -> Statistics:
    return Statistics(chunk_count=chunk_count, token_count=chunk_count * 100, chunk_counts=chunk_counts)


def test_a_score_is_the_formula_worked_by_hand() -> None:
    statistics = Statistics(chunk_count=3, token_count=12, chunk_counts={"river": 2})
    scorer = Scorer(plan(["river"], statistics), statistics)
    rarity = log(1 + 1.5 / 2.5)
    saturation = 3 * 2 / (2 + 2 * (0.6 + 0.4 * 8 / 4))
    assert scorer.score({"river": 2}, 8) == pytest.approx(rarity * saturation, abs=1e-9)


def test_more_of_a_word_a_rarer_word_and_a_shorter_chunk_score_higher() -> None:
    statistics = statistics_of({"common": 50_000, "rare": 5})
    scorer = Scorer(plan(["common", "rare"], statistics), statistics)
    assert scorer.score({"rare": 2}, 100) > scorer.score({"rare": 1}, 100) > scorer.score({"common": 1}, 100) > 0
    assert scorer.score({"rare": 1}, 50) > scorer.score({"rare": 1}, 200)
    assert scorer.score({"other": 9}, 100) == 0


def test_every_word_weighs_something_even_where_all_chunks_have_it() -> None:
    assert statistics_of({"the": 10}, 10).idf("the") > 0


def test_the_rarest_words_lead_until_they_reach_enough_chunks() -> None:
    counts = {"the": 90_000, "river": MIN_LEADING_POSTINGS - 10, "salmon": 20, "of": 80_000}
    query = plan(["of", "the", "river", "salmon", "unknown"], statistics_of(counts))
    assert query.terms == ("of", "river", "salmon", "the")
    assert query.leading == ("river", "salmon")


def test_very_frequent_words_lead_where_there_are_no_others() -> None:
    query = plan(["the"], statistics_of({"the": 90_000}))
    assert query.leading == ("the",)


def test_only_so_many_words_are_looked_up_and_ranked() -> None:
    words = [f"w{number}" for number in range(10_000)]
    looked_up = list(find_looked_up_terms(" ".join(words)))
    assert looked_up == words[:MAX_LOOKED_UP_TERMS]
    counts = {word: place + 1 for place, word in enumerate(looked_up)}
    assert set(plan(looked_up, statistics_of(counts)).terms) == set(looked_up[:MAX_RANKED_TERMS])


def test_nothing_known_leads_nowhere() -> None:
    query = plan(["unknown"], statistics_of({}, 0))
    assert (query.terms, query.leading) == ((), ())
    assert Scorer(query, statistics_of({}, 0)).score({}, 0) == 0


def test_no_score_exceeds_the_greatest_to_which_unknown_words_add() -> None:
    words = [f"w{number}" for number in range(MAX_RANKED_TERMS + 20)]
    statistics = statistics_of({word: 10 * place + 1 for place, word in enumerate(words)})
    scorer = Scorer(plan(words, statistics), statistics)
    full = scorer.score(dict.fromkeys(words, 10_000), 100)
    assert 0.9 * greatest_score(words, statistics) < full <= greatest_score(words, statistics)
    assert greatest_score(["w9", "unknown"], statistics) > 2 * greatest_score(["w9"], statistics)
    assert greatest_score([], statistics) == 0.0
