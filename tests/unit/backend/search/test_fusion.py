"""Joining two rankings."""

from hypothesis import given
from hypothesis import strategies as st

from backend.search.domain.chunks import Chunk, ChunkHit
from backend.search.domain.fusion import (
    FUSION_DEPTH,
    FUSION_K,
    HALF_SHARE,
    Rankings,
    content_rank,
    fuse,
    reorder,
    score_by_words,
)


def hit(text: str, score: float = 0.5, share: float = HALF_SHARE) -> ChunkHit:
    chunk = Chunk(id=f"c_{text}", document_id="d", ordinal=0, heading_path=(), text=text, tokens=1)
    return ChunkHit(
        knowledge_base_id="kb_a",
        document_id="d",
        document_name="n",
        chunk=chunk,
        score=score,
        share_of_words=share,
    )


def texts(hits: tuple[ChunkHit, ...]) -> list[str]:
    return [one.chunk.text for one in hits]


def fuse_hits(by_words: list[ChunkHit], by_meaning: list[ChunkHit], *lacking: str) -> tuple[ChunkHit, ...]:
    return fuse(Rankings(by_words, by_meaning, [f"c_{text}" for text in lacking]))


RANKINGS = st.lists(st.sampled_from("abcdefghijkl"), unique=True)


def test_what_is_first_in_both_rankings_scores_one() -> None:
    first, *_ = fuse_hits([hit("a"), hit("b")], [hit("a"), hit("c")])
    assert (first.chunk.text, first.score) == ("a", 1.0)


def test_a_chunk_of_both_rankings_is_before_one_that_is_first_in_one() -> None:
    assert texts(fuse_hits([hit("a"), hit("b")], [hit("c"), hit("b")])) == ["b", "c", "a"]


def test_of_equal_scores_the_nearest_meaning_comes_first_then_content_decides() -> None:
    assert texts(fuse_hits([hit("a")], [hit("b")])) == ["b", "a"]
    alike = [hit(text).model_copy(update={"score": 1.0, "similarity": 0.5}) for text in "ba"]
    assert texts(tuple(sorted(alike, key=content_rank))) == ["a", "b"]


def test_hits_keep_their_cosine_and_tell_what_found_them() -> None:
    fused = {one.chunk.text: one for one in fuse_hits([hit("a", 0.3), hit("b", 0.2)], [hit("b", 0.9), hit("c", 0.8)])}
    found = {text: (one.similarity, one.has_words_of_query) for text, one in fused.items()}
    assert found == {"a": (None, True), "b": (0.9, True), "c": (0.8, False)}


def test_rankings_are_read_to_their_depth() -> None:
    long = [hit(f"{number:03}") for number in range(FUSION_DEPTH + 5)]
    fused = fuse_hits(long, [hit("000", 0.5)])
    assert len(fused) == FUSION_DEPTH
    assert fused[-1].score == round((FUSION_K + 1) / (FUSION_K + FUSION_DEPTH) / 2, 9)


@given(RANKINGS, RANKINGS, st.floats(-1, 1), st.floats(0, 1))
def test_scores_fall_from_one_to_above_zero(words: list[str], meaning: list[str], near: float, share: float) -> None:
    fused = fuse_hits([hit(text, 0.1, share) for text in words], [hit(text, near) for text in meaning])
    scores = [one.score for one in fused]
    assert sorted(texts(fused)) == sorted({*words, *meaning})
    assert all(0 < score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


def test_words_that_a_chunk_shares_by_chance_count_little() -> None:
    nearest = [hit("answer", 0.6), hit("b", 0.5), hit("c", 0.4), hit("shared", 0.3)]
    assert texts(fuse_hits([hit("shared", share=0.1)], nearest))[0] == "answer"
    assert texts(fuse_hits([hit("shared", share=0.6)], nearest))[0] == "shared"


def test_of_texts_that_say_the_same_the_one_with_the_words_of_the_query_comes_first() -> None:
    own, twin = hit("own", 0.55, share=0.3), hit("twin", 0.6)
    assert texts(fuse_hits([own], [twin, own])) == ["own", "twin"]


def test_what_lies_near_counts_more_than_what_lies_far() -> None:
    word = hit("word", share=0.5)
    assert texts(fuse_hits([word], [hit("near", 0.8)])) == ["near", "word"]
    assert texts(fuse_hits([word], [hit("far", 0.2)])) == ["word", "far"]


def test_a_hit_by_words_tells_its_share_of_the_most_that_a_chunk_could_have() -> None:
    scored = score_by_words(hit("a", 3.0), 12.0)
    assert (scored.score, scored.share_of_words) == (0.75, 0.25)
    assert score_by_words(hit("a", 0.0), 0.0).share_of_words == 0.0


def test_a_preference_moves_hits_and_leaves_scores_at_their_places() -> None:
    hits = (hit("a", 0.9), hit("b", 0.5), hit("c", 0.4), hit("d", 0.1))
    moved = reorder(hits, [-7.5, 12.0, 12.0])
    assert [(one.chunk.text, one.score) for one in moved] == [("b", 0.9), ("c", 0.5), ("a", 0.4), ("d", 0.1)]


@given(RANKINGS, RANKINGS, st.floats(-1, 1))
def test_the_first_by_words_stays_first_where_it_has_no_vector(
    words: list[str], meaning: list[str], near: float
) -> None:
    others = [text for text in meaning if text not in words[:1]]
    first, *_ = fuse_hits([hit(text) for text in ["0", *words]], [hit(text, near) for text in others], "0", *words[:1])
    assert first.chunk.text == "0"


def test_without_vectors_of_what_words_found_the_order_is_theirs() -> None:
    words = [hit(text, share=share) for text, share in (("a", 0.5), ("b", 0.4), ("c", 0.3))]
    fused = texts(fuse_hits(words, [hit("far", 0.9), hit("farther", 0.8)], "a", "b", "c"))
    assert fused[:3] == ["a", "b", "c"]
    assert set(fused[3:]) == {"far", "farther"}


def test_one_chunk_without_a_vector_is_not_overtaken_by_the_second_vote_of_another() -> None:
    words = [hit("answer", share=0.5), hit("other", share=0.4)]
    assert texts(fuse_hits(words, [hit("other", 0.4)]))[0] == "other"
    assert texts(fuse_hits(words, [hit("other", 0.4)], "answer"))[0] == "answer"
