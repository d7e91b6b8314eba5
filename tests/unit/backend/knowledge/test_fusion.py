"""Joining two rankings."""

from hypothesis import given
from hypothesis import strategies as st

from backend.knowledge.domain.fusion import (
    FUSION_DEPTH,
    FUSION_K,
    WORDS_ACROSS_LANGUAGES,
    content_rank,
    fuse,
    reordered,
    weight_of_words,
)
from backend.knowledge.domain.knowledge import Chunk, ChunkHit


def hit(text: str, score: float = 0.5) -> ChunkHit:
    chunk = Chunk(id=f"c_{text}", document_id="d", ordinal=0, heading_path=(), text=text, tokens=1)
    return ChunkHit(knowledge_base_id="kb_a", document_id="d", document_name="n", chunk=chunk, score=score)


def texts(hits: tuple[ChunkHit, ...]) -> list[str]:
    return [one.chunk.text for one in hits]


RANKINGS = st.lists(st.sampled_from("abcdefghijkl"), unique=True)


def test_what_is_first_in_both_rankings_scores_one() -> None:
    first, *_ = fuse([hit("a"), hit("b")], [hit("a"), hit("c")])
    assert (first.chunk.text, first.score) == ("a", 1.0)


def test_a_chunk_of_both_rankings_is_before_one_that_is_first_in_one() -> None:
    assert texts(fuse([hit("a"), hit("b")], [hit("c"), hit("b")])) == ["b", "c", "a"]


def test_of_equal_scores_the_nearest_meaning_comes_first_then_content_decides() -> None:
    assert texts(fuse([hit("a")], [hit("b", -0.9)])) == ["b", "a"]
    alike = [hit(text).model_copy(update={"score": 1.0, "similarity": 0.5}) for text in "ba"]
    assert texts(tuple(sorted(alike, key=content_rank))) == ["a", "b"]


def test_hits_keep_their_cosine_and_tell_what_found_them() -> None:
    fused = {one.chunk.text: one for one in fuse([hit("a", 0.3), hit("b", 0.2)], [hit("b", 0.9), hit("c", 0.8)])}
    found = {text: (one.similarity, one.has_words_of_query) for text, one in fused.items()}
    assert found == {"a": (None, True), "b": (0.9, True), "c": (0.8, False)}


def test_rankings_are_read_to_their_depth() -> None:
    long = [hit(f"{number:03}") for number in range(FUSION_DEPTH + 5)]
    assert len(fuse(long, [])) == FUSION_DEPTH
    assert fuse(long, [])[-1].score == round((FUSION_K + 1) / (FUSION_K + FUSION_DEPTH) / 2, 9)


@given(RANKINGS, RANKINGS)
def test_scores_fall_from_one_to_above_zero_and_depend_on_places_alone(words: list[str], meaning: list[str]) -> None:
    fused = fuse([hit(text, 0.1) for text in words], [hit(text, -0.3) for text in meaning])
    again = fuse([hit(text, 0.8) for text in words], [hit(text, 0.9) for text in meaning])
    scores = [one.score for one in fused]
    assert sorted(texts(fused)) == sorted({*words, *meaning})
    assert all(0 < score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert [(one.chunk.id, one.score) for one in again] == [(one.chunk.id, one.score) for one in fused]


def test_a_preference_moves_hits_and_leaves_scores_at_their_places() -> None:
    hits = (hit("a", 0.9), hit("b", 0.5), hit("c", 0.4), hit("d", 0.1))
    moved = reordered(hits, [-7.5, 12.0, 12.0])
    assert [(one.chunk.text, one.score) for one in moved] == [("b", 0.9), ("c", 0.5), ("a", 0.4), ("d", 0.1)]


def test_words_are_worth_less_where_the_nearest_meaning_is_in_other_letters() -> None:
    english, chinese = hit("A page is acknowledged."), hit("告警要确认。")
    assert weight_of_words("谁来确认告警？", [chinese, english]) == 1.0
    assert weight_of_words("谁来确认告警？", []) == 1.0
    worth = weight_of_words("谁来确认告警？", [english, chinese])
    assert worth == WORDS_ACROSS_LANGUAGES
    words, meaning = [chinese, hit("a")], [english, hit("b"), chinese]
    assert texts(fuse(words, meaning, words=worth))[:2] == [chinese.chunk.text, english.chunk.text]
    assert texts(fuse([hit("a"), hit("c")], meaning, words=worth))[:3] == [one.chunk.text for one in meaning]
    assert fuse([english], [english], words=worth)[0].score == 1.0
