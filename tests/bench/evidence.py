"""`python -m tests.bench.evidence`: which questions count as weak evidence, asked of their own base and of others.

The questions of the leak test are asked of its base; the Chinese ones of the corpora, if they are there, of bases of
other passages. Those of `evidence_cases.jsonl` and of
`fresh_evidence_cases.jsonl` are asked of the English and the Chinese half of the base of the leak
test, by words alone and by meaning too, with the local embedder.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import orjson

from backend.embeddings.ports import MeaningPorts
from backend.embeddings.services.question_vectors import NO_MEANING
from backend.restricted.domain.evidence import evidence_of
from backend.search.domain.fusion import FUSION_DEPTH
from backend.search.services.fused_search import FusedSearch
from shared.models.knowledge_api import MAX_SEALED_CHUNKS
from tests.bench.kept_vectors import KeptVectors
from tests.contract.knowledge_cases import Knowledge, indexed, make_base, make_document, sql_knowledge
from tests.fakes.exact_nearest import ExactNearest
from tests.leaks.chunks import pieces_of
from tests.leaks.corpus.reading import benign_questions, document_names, document_text
from tests.leaks.planting import chinese_questions, corpora

QUESTIONS = 300
CASES, FRESH_CASES = (Path(__file__).with_name(f"{name}_cases.jsonl") for name in ("evidence", "fresh_evidence"))


async def main() -> None:
    """Print the shares."""
    with tempfile.TemporaryDirectory() as directory:
        async with sql_knowledge(f"sqlite+aiosqlite:///{directory}/ballast.db") as knowledge:
            await _fill(knowledge, "kb_own", {name: document_text(name) for name in document_names()})
            own = [question.text for question in benign_questions()]
            sys.stdout.write(f"own base: {await _weak(knowledge, 'kb_own', own):.1%} of {len(own)} questions\n")
            if (place := corpora()) is not None:
                for passages in (8, 150):
                    texts, questions = chinese_questions(place, passages, QUESTIONS)
                    await _fill(knowledge, f"kb_{passages}", texts)
                    share = await _weak(knowledge, f"kb_{passages}", questions)
                    sys.stdout.write(f"{passages} other Chinese passages: {share:.1%} of {len(questions)} questions\n")
            await _print_cases(knowledge)


async def _fill(knowledge: Knowledge, base_id: str, texts: dict[str, str]) -> None:
    await knowledge.store.create_base(make_base(base_id), "ann")
    for name, text in texts.items():
        pieces = pieces_of(text)
        document, body, plain = make_document(name, [piece.text for piece in pieces], base_id=base_id)
        under = [{"heading_path": piece.heading_path} for piece in pieces]
        chunks = [chunk.model_copy(update=headings) for chunk, headings in zip(plain, under, strict=True)]
        await knowledge.store.put_document(document, body, indexed(chunks))


async def _weak(knowledge: Knowledge, base_id: str, questions: Iterable[str]) -> float:
    asked = list(questions)
    found = [await knowledge.retrieval.search((base_id,), text, FUSION_DEPTH) for text in asked]
    evident = [evidence_of(text, hits, (), MAX_SEALED_CHUNKS) for text, hits in zip(asked, found, strict=True)]
    return evident.count(None) / len(asked)


async def _print_cases(knowledge: Knowledge) -> None:
    """Print how many questions of each kind have evidence: by words, by meaning too, and where languages may differ."""
    for language in ("en", "zh"):
        names = [name for name in document_names() if name.startswith(language)]
        await _fill(knowledge, f"kb_{language}", {name: document_text(name) for name in names})
    kept = KeptVectors()
    meaning = MeaningPorts(kept, kept, NO_MEANING.reranker)
    fused = FusedSearch(knowledge.retrieval, ExactNearest(knowledge.retrieval, kept), meaning)
    for cases in (CASES, FRESH_CASES):
        sys.stdout.write(f"{cases.name}\n")
        asked, by_words, by_both, translated = (Counter[str]() for _ in range(4))
        for line in cases.read_bytes().splitlines():
            case = orjson.loads(line)
            kind, base_id, question = f"{case['kind']} ({case['base']})", f"kb_{case['base']}", case["question"]
            words = await knowledge.retrieval.search((base_id,), question, FUSION_DEPTH)
            both = await fused.search((base_id,), question, FUSION_DEPTH)
            asked[kind] += 1
            by_words[kind] += evidence_of(question, words, (), MAX_SEALED_CHUNKS) is not None
            by_both[kind] += evidence_of(question, both, (), MAX_SEALED_CHUNKS) is not None
            translated[kind] += evidence_of(question, both, (base_id,), MAX_SEALED_CHUNKS) is not None
        for kind, count in asked.items():
            found = f"by words {by_words[kind]}, by both {by_both[kind]}, with translation {translated[kind]}"
            sys.stdout.write(f"  {kind}: evidence of {count} questions {found}\n")


if __name__ == "__main__":
    asyncio.run(main())
