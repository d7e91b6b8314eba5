"""A process that settles answers until it is killed: `python -m tests.contract.telling_answers URL NAME`.

Each tells two facts of one document to one of a row of readers, who may be told ten of it. A line on standard output
names an answer whose outcome is stored.
"""

import asyncio
import sys

from backend.foundation.sql.chosen import open_database
from backend.restricted.domain.restricted import Settlement
from shared.models.knowledge_api import ToldFact
from shared.models.safe_summary import AnswerReason
from tests.contract.restricted_cases import (
    SIGNER,
    WIDE,
    Restricted,
    make_record,
    make_search,
    restricted_over,
    settlement,
)
from tests.contract.store_cases import POOL_WAIT_SECONDS

DOCUMENT, MOST_FACTS, ANSWERS_EACH, AT_ONCE = "doc_kb_a_a", 10, 8, 4


def answer_of(search_id: str, number: int) -> tuple[Settlement, str]:
    """Return the outcome of a search that tells two facts, and the reader."""
    reader = f"reader_{number // ANSWERS_EACH}"
    search = make_search(search_id, user_id=reader, conversation_id=f"conv_{reader}")
    record = make_record(f"audit_{search_id}", search, AnswerReason.RISK, facts=2)
    facts = tuple(ToldFact(document_id=DOCUMENT, digest=f"{search_id} {part}") for part in range(2))
    told = settlement(record, search, is_released=True)
    return told.model_copy(update={"facts": facts, "most_facts": MOST_FACTS}), reader


async def tell_answer(stores: Restricted, name: str, number: int) -> None:
    """Charge a search, settle its answer, and say so."""
    search_id = f"{name}_{number}"
    told, reader = answer_of(search_id, number)
    await stores.ledger.charge(make_search(search_id, user_id=reader, conversation_id=f"conv_{reader}"), [], WIDE)
    await stores.ledger.settle(told, SIGNER)
    sys.stdout.write(f"{search_id}\n")
    sys.stdout.flush()


async def main(url: str, name: str) -> None:
    """Settle answers, some at once, until the process is killed."""
    stores, first = restricted_over(open_database(url, pool_wait_seconds=POOL_WAIT_SECONDS)), 0
    while True:
        await asyncio.gather(*(tell_answer(stores, name, first + number) for number in range(AT_ONCE)))
        first += AT_ONCE


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
