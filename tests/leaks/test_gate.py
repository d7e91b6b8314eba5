"""The hostile models at the gate itself get nothing out, whatever passages stand together."""

import random
from dataclasses import replace

from chat_shell.sealed.gate import prepare
from tests.examples import of_many
from tests.leaks.gate import Search, Texts, corpus, leaks_of, searches
from tests.leaks.hostile.stub import Stub
from tests.leaks.hostile.stubs import STUBS

SEARCHES, LEAST_BLIND = 20, 5
TEXTS = Texts.of(corpus())
ASSERTED = [stub for stub in STUBS if stub.gives_away and stub.is_asserted]


def found_by(stub: Stub, number: int, search: Search) -> bool:
    return bool(leaks_of(stub, search, TEXTS, f"few {number} {stub.name}")[0])


def test_no_model_that_is_asserted_gets_anything_out_of_the_corpus() -> None:
    few = enumerate(searches(TEXTS, of_many(SEARCHES), random.Random("few")))
    assert [(number, stub.name) for number, search in few for stub in ASSERTED if found_by(stub, number, search)] == []


def test_a_gate_that_knows_no_passages_lets_some_of_them_out() -> None:
    [search] = searches(TEXTS, 1, random.Random("few"))
    blind = replace(search, case=prepare([], search.question.text, ()))
    assert sum(found_by(stub, 0, blind) for stub in ASSERTED) >= LEAST_BLIND
