"""What of a search's hits is evidence for its query: by words, by meaning, and by both together."""

import pytest

from backend.restricted.domain.evidence import BARS, BARS_OF_LARGE_BASES, evidence_of, is_weak, nearness, words_share
from backend.restricted.domain.topical_words import topical_words
from backend.search.domain.chunks import Chunk, ChunkHit
from backend.search.domain.fusion import FUSION_DEPTH

LIMIT = 24
ENGLISH, CHINESE = "Guests pay for their rooms before they leave.", "客人离开之前要付清房费。"
ASKED, ASKED_IN_CHINESE = "When is the money due for a hotel stay?", "住宿的钱什么时候交？"
COOKED, COOKED_IN_CHINESE = "How is bread with guests baked at home?", "面包怎样在家里烤给客人？"


def hit(text: str, *headings: str) -> ChunkHit:
    found = Chunk(id="c", document_id="d", ordinal=0, heading_path=headings, text=text, tokens=1)
    return ChunkHit(knowledge_base_id="kb_a", document_id="d", document_name="n", chunk=found, score=0.01)


@pytest.mark.parametrize(
    ("query", "weak"),
    [
        ("late bookings", False),
        ("What are the risks of late bookings?", False),
        ("bookings", False),
        ("weather in Lisbon tomorrow and the next ferry strike bookings", True),
        ("What are the risks?", False),
        ("assessment of bookings: main weaknesses, gaps, priorities, recommendations for improvement", False),
        ("booking delays", False),
        ("lateness of travellers", False),
        ("报销 发票", False),
        ("为了报销而忙碌的同事应该怎样", False),
        ("我们的报销有什么风险", False),
        ("天气预报怎么样明天下雨吗请告诉我们", True),
        ("what is it about", False),
        ("", True),
    ],
)
def test_evidence_is_judged_by_topical_words(query: str, weak: bool) -> None:
    assert is_weak(query, [hit("Trains and the bookings.", "Late"), hit("差旅费报销需要发票。")]) is weak
    assert is_weak(query, []) is (bool(topical_words(query)) or not query)


def by_meaning(text: str, similarity: float, name: str = "c") -> ChunkHit:
    return named(hit(text), name).model_copy(update={"similarity": similarity, "has_words_of_query": False})


def by_both(text: str, similarity: float, name: str = "c") -> ChunkHit:
    return named(hit(text), name).model_copy(update={"similarity": similarity})


def named(found: ChunkHit, name: str) -> ChunkHit:
    return found.model_copy(update={"chunk": found.chunk.model_copy(update={"id": name})})


def evident(query: str, *hits: ChunkHit, may_translate: bool = False) -> tuple[ChunkHit, ...] | None:
    return evidence_of(query, hits, ["kb_a"] if may_translate else ["kb_b"], LIMIT)


@pytest.mark.parametrize(("query", "text"), [(ASKED, ENGLISH), (ASKED_IN_CHINESE, CHINESE)])
def test_a_meaning_that_is_near_enough_is_evidence_without_a_common_word(query: str, text: str) -> None:
    near, far = by_meaning(text, 0.3), by_meaning(text, 0.05)
    assert evident(query, near) == (near,)
    assert evident(query, far) is None


@pytest.mark.parametrize(("query", "text"), [(COOKED, ENGLISH), (COOKED_IN_CHINESE, CHINESE)])
def test_a_common_word_is_no_evidence_where_every_meaning_is_far(query: str, text: str) -> None:
    assert evident(query, hit(text)) == (hit(text),)
    assert evident(query, by_both(text, 0.02)) is None


def test_many_common_words_need_less_meaning_than_few() -> None:
    similarity = 0.12
    assert evident("guests pay rooms", by_both(ENGLISH, similarity)) is not None
    assert evident("guests bake bread", by_both(ENGLISH, similarity)) is None


def test_who_speaks_of_we_needs_less_than_who_asks_the_world() -> None:
    found = by_both(ENGLISH, 0.14)
    assert evident("Do our guests complain loudly?", found) == (found,)
    assert evident("Do guests complain loudly?", found) is None


@pytest.mark.parametrize(
    ("query", "text"),
    [("What are the biggest risks?", ENGLISH), ("主要风险是什么？", CHINESE), ("What should we fix first?", ENGLISH)],
)
def test_a_question_without_a_topic_is_answered_however_far_all_is(query: str, text: str) -> None:
    found = by_both(text, -0.1)
    assert evident(query, found) == (found,)
    assert evident(query, by_meaning(text, -0.1, "a")) is not None


@pytest.mark.parametrize(("query", "text"), [(ASKED, CHINESE), (ASKED_IN_CHINESE, ENGLISH)])
def test_another_language_is_evidence_only_where_the_owner_allows_it(query: str, text: str) -> None:
    near, far = by_meaning(text, 0.3), by_meaning(text, 0.05)
    assert evident(query, near) is None
    assert evident(query, near, may_translate=True) == (near,)
    assert evident(query, far, may_translate=True) is None


def test_a_question_without_a_topic_gets_another_language_only_with_permission() -> None:
    found = by_meaning(CHINESE, 0.1)
    assert evident("What are the biggest risks?", found) == ()
    assert evident("What are the biggest risks?", found, may_translate=True) == (found,)


def test_hits_that_only_meaning_found_are_shown_where_they_are_nearer_than_the_middle() -> None:
    near, nearer, far = by_meaning(ENGLISH, 0.3, "a"), by_meaning(ENGLISH, 0.4, "b"), by_meaning(ENGLISH, 0.05, "c")
    assert evident(ASKED, nearer, near, far) == (nearer,)
    also = by_both(ENGLISH, 0.05, "d")
    assert evident(ASKED, nearer, near, also) == (nearer, also)


def test_chunks_without_a_vector_are_judged_by_their_words() -> None:
    found, far = named(hit("Trains and the bookings."), "a"), by_meaning("Nothing of the kind.", 0.01, "b")
    assert evident("late bookings", found, far) == (found,)
    assert evident("late bookings", far) is None


def test_in_a_large_base_the_middle_of_the_nearest_chunks_tells_nothing() -> None:
    small = [by_both(ENGLISH, 0.16, str(number)) for number in range(FUSION_DEPTH - 1)]
    large = [*small, by_both(ENGLISH, 0.16, "last")]
    question = "Do hotels charge guests?"
    assert evident(question, *small) is not None
    assert evident(question, *large) is None
    assert evident("Which guests pay before they leave?", by_both(ENGLISH, 0.3), *large) is not None


def test_no_meaning_is_evidence_where_a_language_is_unknown() -> None:
    assert evident("Wann ist die Rechnung fällig?", by_meaning(ENGLISH, 1.0), may_translate=True) is None
    assert evident("When is the money due?", by_meaning("Zimmer werden vor der Abreise bezahlt.", 1.0)) is None


def test_only_the_hits_that_may_be_shown_are_returned() -> None:
    hits = [by_both(ENGLISH, 0.5, str(number)) for number in range(40)]
    assert evidence_of(ASKED, hits, (), LIMIT) == tuple(hits[:LIMIT])


def test_nearer_texts_and_more_words_never_weigh_less() -> None:
    assert nearness([], is_large=False) == 0
    assert nearness([0.2, 0.1], is_large=True) == 0.2 < nearness([0.2, 0.1], is_large=False)
    few, many = (words_share(query, [hit(ENGLISH)]) for query in ("guests bread", "guests rooms"))
    assert few is not None
    assert many is not None
    assert few < many < 1
    assert words_share("What are the risks?", [hit(ENGLISH)]) is None
    assert all(large > small for large, small in zip(BARS_OF_LARGE_BASES[:2], BARS[:2], strict=True))


@pytest.mark.parametrize(
    "query",
    [
        "What are the biggest risks?", "What would you advise?", "Where are we weakest?", "What should we fix first?",
        "主要风险是什么？", "有哪些差距？", "请给出诊断。", "你有什么建议？", "最紧迫的问题是什么？",
        "我们应该优先解决什么问题？",
    ],
)  # fmt: skip
def test_a_question_for_help_alone_names_no_topic(query: str) -> None:
    assert topical_words(query) == frozenset()
