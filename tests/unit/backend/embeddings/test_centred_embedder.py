"""Vectors that are seen from the middle of their language."""

import asyncio
from collections.abc import Sequence

import pytest

from backend.embeddings.domain import (
    EmbeddingModel,
    TextKind,
    Vector,
    WritingSystem,
    find_direction,
    find_writing_system,
    to_vector,
    vector_numbers,
)
from backend.embeddings.services.centred_embedder import REFERENCE_TEXTS, CentredEmbedder
from shared.errors import Unavailable

TOPICS = ("money", "钱", "dog", "狗")
LATIN, HAN, KIND, REST = 0, 1, 2, 3


class BiasedEmbedder:
    """A model in whose vectors language and kind weigh more than what a text is about, as in real ones."""

    def __init__(self) -> None:
        self.calls: list[tuple[TextKind, int]] = []
        self.failure: Exception | None = None

    async def model(self) -> EmbeddingModel:
        return EmbeddingModel(name="biased", dimension=12)

    async def prepare(self) -> None:
        """Do nothing."""

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        self.calls.append((kind, len(texts)))
        if self.failure is not None:
            raise self.failure
        return tuple(_biased(text, kind) for text in texts)


def _biased(text: str, kind: TextKind) -> Vector:
    numbers = [0.0] * 12
    numbers[HAN if find_writing_system(text) is WritingSystem.HAN else LATIN] = 3.0
    numbers[KIND] = 3.0 if kind is TextKind.QUERY else 0.0
    about = next((place // 2 for place, word in enumerate(TOPICS) if word in text), 2 + sum(map(ord, text)) % 7)
    numbers[REST + about] = 1.0
    return to_vector(numbers)


def cosine(first: Vector, second: Vector) -> float:
    return sum(one * other for one, other in zip(vector_numbers(first), vector_numbers(second), strict=True))


async def nearest(embedder: CentredEmbedder | BiasedEmbedder, question: str, texts: Sequence[str]) -> str:
    [asked] = await embedder.embed([question], TextKind.QUERY)
    found = await embedder.embed(texts, TextKind.PASSAGE)
    return max(zip(texts, found, strict=True), key=lambda pair: cosine(asked, pair[1]))[0]


async def test_a_question_is_nearest_to_what_answers_it_in_whatever_language() -> None:
    biased = BiasedEmbedder()
    centred = CentredEmbedder(biased)
    await centred.prepare()
    texts = ["The dog sleeps in the hall.", "这里的人用钱付账。"]
    assert await nearest(biased, "How is money paid?", texts) == texts[0]
    assert await nearest(centred, "How is money paid?", texts) == texts[1]
    assert await nearest(centred, "狗睡在哪里？", texts) == texts[0]


async def test_the_middles_are_asked_for_once_and_again_after_a_failure() -> None:
    biased = BiasedEmbedder()
    centred = CentredEmbedder(biased)
    with pytest.raises(Unavailable):
        await centred.embed(["too early"], TextKind.QUERY)
    assert biased.calls == []
    biased.failure = Unavailable("away")
    with pytest.raises(Unavailable):
        await centred.prepare()
    biased.failure = None
    biased.calls.clear()
    await asyncio.gather(centred.prepare(), centred.prepare(), centred.embed(["text"], TextKind.PASSAGE))
    asked = [(kind, len(texts)) for kind, by_system in REFERENCE_TEXTS.items() for texts in by_system.values()]
    assert biased.calls == [*asked, (TextKind.PASSAGE, 1)]


async def test_the_texts_that_tell_the_middles_are_part_of_the_model() -> None:
    model = await CentredEmbedder(BiasedEmbedder()).model()
    assert model.name.startswith("biased~")
    assert model.dimension == 12


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ("How is money paid?", WritingSystem.LATIN),
        ("Wie wird bezahlt?", WritingSystem.LATIN),
        ("Pager 值班时怎么用？", WritingSystem.HAN),
        ("Use the pager (值班) for it.", WritingSystem.LATIN),
        ("Кто платит?", WritingSystem.OTHER),
        ("12 + 30 = 42", WritingSystem.OTHER),
        ("", WritingSystem.OTHER),
    ],
)
def test_the_writing_system_is_that_of_most_words(text: str, system: WritingSystem) -> None:
    assert find_writing_system(text) is system


def test_a_vector_in_the_middle_stays_what_it_is() -> None:
    vector = to_vector([3.0, 4.0])
    assert find_direction(vector_numbers(vector), vector) == vector
    assert list(vector_numbers(find_direction([0.0, 0.8], vector))) == pytest.approx([1.0, 0.0], abs=1e-6)


def test_each_text_of_one_language_has_its_like_in_the_other() -> None:
    for by_system in REFERENCE_TEXTS.values():
        assert len({len(texts) for texts in by_system.values()}) == 1
        for system, texts in by_system.items():
            assert {find_writing_system(text) for text in texts} == {system}
