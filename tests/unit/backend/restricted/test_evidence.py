"""What of a search's hits is evidence for its query: by frequent words alone, whatever its meaning."""

import pytest

from backend.restricted.domain.evidence import RAREST_WORD, evidence_of, is_weak, topical_words
from backend.search.domain.chunks import Chunk, ChunkHit
from backend.search.domain.tokenizing import tokenize
from shared.disclosure.everyday import keep_everyday

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
        ("weather garden music river kitchen football winter bookings", True),
        ("What are the risks?", False),
        ("assessment of bookings: main weaknesses, gaps, priorities, recommendations for improvement", False),
        ("booking delays", True),
        ("lateness of travellers", True),
        ("报销 发票", True),
        ("为了报销而忙碌的同事应该怎样", True),
        ("我们的报销有什么风险", False),
        ("天气预报怎么样明天下雨吗请告诉我们", True),
        ("what is it about", False),
        ("", True),
    ],
)
def test_evidence_is_judged_by_topical_words(query: str, weak: bool) -> None:
    asked = keep_everyday(query, RAREST_WORD)
    assert is_weak(asked, [hit("Trains and the bookings.", "Late"), hit("差旅费报销需要发票。")]) is weak
    assert is_weak(asked, []) is (bool(topical_words(asked)) or not tokenize(asked))


def by_meaning(text: str, similarity: float, name: str = "c") -> ChunkHit:
    return named(hit(text), name).model_copy(update={"similarity": similarity, "has_words_of_query": False})


def by_both(text: str, similarity: float, name: str = "c") -> ChunkHit:
    return named(hit(text), name).model_copy(update={"similarity": similarity})


def named(found: ChunkHit, name: str) -> ChunkHit:
    return found.model_copy(update={"chunk": found.chunk.model_copy(update={"id": name})})


def evident(query: str, *hits: ChunkHit, may_translate: bool = False) -> tuple[ChunkHit, ...] | None:
    return evidence_of(query, hits, ["kb_a"] if may_translate else ["kb_b"], LIMIT)


@pytest.mark.parametrize(("query", "text"), [(COOKED, ENGLISH), (COOKED_IN_CHINESE, CHINESE)])
def test_common_words_are_evidence_however_far_the_meaning_is(query: str, text: str) -> None:
    assert evident(query, hit(text)) == (hit(text),)
    assert evident(query, by_both(text, 0.02)) == (by_both(text, 0.02),)


@pytest.mark.parametrize(("query", "text"), [(ASKED, ENGLISH), (ASKED_IN_CHINESE, CHINESE)])
def test_no_meaning_is_evidence_without_a_common_word(query: str, text: str) -> None:
    assert evident(query, by_meaning(text, 0.9)) is None


@pytest.mark.parametrize("text", ["Ruth Bookings keeps the late ledger.", "LATE: Ruth Bookings."])
def test_a_name_is_no_evidence(text: str) -> None:
    assert evident("bookings", hit(text)) is None
    assert evident("bookings", hit("Late bookings.")) is not None


def test_a_rare_word_neither_is_evidence_nor_misses() -> None:
    guests = hit(ENGLISH)
    assert evident("zeolite guests", guests) == evident("guests", guests) == (guests,)
    assert evident("zeolite bread baking", hit("The zeolite is full.")) is evident("bread baking", guests) is None


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
    near, far = by_meaning(text, 0.3, "a"), by_meaning(text, 0.05, "b")
    assert evident(query, near, far) is None
    assert evident(query, near, far, may_translate=True) == (near,)


def test_a_question_without_a_topic_gets_another_language_only_with_permission() -> None:
    found = by_meaning(CHINESE, 0.1)
    assert evident("What are the biggest risks?", found) is None
    assert evident("What are the biggest risks?", found, may_translate=True) == (found,)


def test_hits_that_only_meaning_found_are_shown_where_they_are_nearer_than_the_middle() -> None:
    near, nearer, far = by_meaning(ENGLISH, 0.3, "a"), by_meaning(ENGLISH, 0.4, "b"), by_meaning(ENGLISH, 0.05, "c")
    also = by_both(ENGLISH, 0.05, "d")
    assert evident("guests", nearer, near, far, also) == (nearer, also)
    assert evident("What are the risks?", nearer, near, far) == (nearer,)


def test_chunks_without_a_vector_are_judged_by_their_words() -> None:
    found, far = named(hit("Trains and the bookings."), "a"), by_meaning("Nothing of the kind.", 0.01, "b")
    other = by_meaning("Nothing else.", -0.3, "c")
    assert evident("late bookings", found, other, far) == (found, far)
    assert evident("late bookings", far) is None


def test_no_meaning_is_evidence_where_a_language_is_unknown() -> None:
    assert evident("Wann ist die Rechnung fällig?", by_meaning(ENGLISH, 1.0), may_translate=True) is None
    assert evident("When is the money due?", by_meaning("Zimmer werden vor der Abreise bezahlt.", 1.0)) is None


def test_only_the_hits_that_may_be_shown_are_returned() -> None:
    hits = [by_both(ENGLISH, 0.5, str(number)) for number in range(40)]
    assert evidence_of("guests", hits, (), LIMIT) == tuple(hits[:LIMIT])


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
