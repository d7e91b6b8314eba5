"""Labels that name turns: who may not read a turn any more may not read what was taken out of it."""

from collections.abc import Mapping, Sequence

import pytest

from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.labels import Label, Labels, decode_labels, encode_labels, may_read, name_turn
from backend.knowledge.services.knowledge_access import LabelAccess
from shared.models.execution import AccessMode
from tests.contract.knowledge_cases import make_base
from tests.fakes.store_knowledge import FakeKnowledge

ANN = Caller(user_id="ann", tenant="acme", role=KeyRole.USER)
RELEASED, WHOLE = Label("kb_a", AccessMode.RESTRICTED), Label("kb_a", AccessMode.FULL)
DELETED = Label("doc_x", AccessMode.FULL)


async def no_files(_tenant: str, _user_id: str, _ids: Sequence[str]) -> frozenset[str]:
    return frozenset()


@pytest.mark.parametrize(
    ("today", "is_readable"),
    [
        ({"resp_a": (RELEASED,)}, True),
        ({"resp_a": (DELETED, RELEASED)}, False),
        ({"resp_a": (Label("kb_lost", AccessMode.RESTRICTED),)}, False),
        ({}, False),
    ],
)
async def test_what_was_taken_out_of_a_turn_is_read_by_who_may_read_the_turn_today(
    today: Mapping[str, Labels], is_readable: bool
) -> None:
    async def labels_of_turns(turn_ids: Sequence[str]) -> Mapping[str, Labels]:
        return {turn_id: labels for turn_id, labels in today.items() if turn_id in turn_ids}

    store = FakeKnowledge()
    await store.create_base(make_base("kb_a"), "ann")
    labels = name_turn("resp_a", (RELEASED,))
    assert decode_labels(encode_labels(labels)) == labels
    access = await LabelAccess(store, no_files, labels_of_turns).of(ANN, labels)
    assert may_read(access, labels) is is_readable
    assert may_read(access, (RELEASED,))


async def test_no_turn_is_looked_up_where_no_label_names_one() -> None:
    async def labels_of_turns(_turn_ids: Sequence[str]) -> Mapping[str, Labels]:
        raise AssertionError

    store = FakeKnowledge()
    await store.create_base(make_base("kb_a"), "ann")
    assert await LabelAccess(store, no_files, labels_of_turns).of(ANN, [WHOLE]) == {"kb_a": AccessMode.FULL}


@pytest.mark.parametrize("labels", [(), (WHOLE,)])
def test_a_turn_without_released_words_is_not_named(labels: Labels) -> None:
    assert name_turn("resp_a", labels) == labels
