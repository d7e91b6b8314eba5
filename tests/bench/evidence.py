"""`python -m tests.bench.evidence`: which questions count as weak evidence, asked of their own base and of others.

The questions of the leak test are asked of its base; the Chinese ones of the corpora, if they are there, of bases of
other passages.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterable

from backend.knowledge.documents.chosen import read_blocks
from backend.knowledge.domain.chunking import cut_into_pieces
from backend.knowledge.domain.media_types import MARKDOWN
from backend.restricted.domain.evidence import is_weak
from backend.restricted.services.sealed_search import MAX_SEALED_CHUNKS
from tests.contract.knowledge_cases import Knowledge, make_base, put, sql_knowledge
from tests.leaks.corpus.reading import benign_questions, document_names, document_text
from tests.leaks.planting import chinese_questions, corpora

QUESTIONS = 300


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


async def _fill(knowledge: Knowledge, base_id: str, texts: dict[str, str]) -> None:
    await knowledge.store.create_base(make_base(base_id), "ann")
    for name, text in texts.items():
        blocks = [block for block in read_blocks(text.encode(), MARKDOWN) if block.text.strip()]
        await put(knowledge.store, name, [piece.text for piece in cut_into_pieces(blocks)], base_id=base_id)


async def _weak(knowledge: Knowledge, base_id: str, questions: Iterable[str]) -> float:
    asked = list(questions)
    weak = [is_weak(text, await knowledge.retrieval.search((base_id,), text, MAX_SEALED_CHUNKS)) for text in asked]
    return sum(weak) / len(asked)


if __name__ == "__main__":
    asyncio.run(main())
