"""One contract for every `WordRuns`: it knows what a base holds, however that is said."""

import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice, permutations
from pathlib import Path
from typing import NamedTuple

import pytest

from backend.foundation.sql.chosen import open_database
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.migrations.migrate import migrate
from backend.search.domain.shared_runs import DESCRIPTION_RUNS, MODEL_TEXT_RUNS, RunLengths, sequences_of
from backend.search.ports.index import WordRuns
from backend.search.sql.word_runs import RUNS_AT_ONCE
from tests.contract.knowledge_cases import make_base, put
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store, word_runs
from tests.fakes.store_knowledge import FakeKnowledge

ENGLISH = "The escalation ladder begins with the duty engineer and ends with the vault keeper of the northern site."
CHINESE = "值班工程师先通知北区金库的保管员，再由保管员在名册上签字；确认以后，方可离开。"
EVERYDAY = "It is as it is and it was as it was, and so it is to be in all that is to be of it."
LISTED = "张伟、李娜、王芳、赵磊、钱静、孙强、周敏、吴洋"
MIXED = "先用 alpha 连接 beta 之后 gamma 再到 delta 然后 epsilon 以及 zeta 最后 eta 还有 theta 与 iota 结束"
ACCENTED = "Über die Größe der Räume müssen nämlich später Fachkräfte für Gebäude entscheiden, bevor jemand einzieht."
LINKED = (
    "He takes [the red key](https://wiki.example.org/keys/red) signs for it[^sign] and&nbsp;tells the porter twice."
)


class Protected(NamedTuple):
    store: KnowledgeStore
    words: WordRuns


@asynccontextmanager
async def _sql(url: str) -> AsyncGenerator[Protected]:
    database = open_database(url)
    try:
        await migrate(database)
        yield Protected(
            knowledge_store(database, FakeClock()),
            word_runs(database),
        )
    finally:
        await database.close()


@pytest.fixture(params=["fake", "sqlite", "postgresql"])
async def protected(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Protected]:
    if request.param == "fake":
        fake = FakeKnowledge()
        await _fill(fake)
        yield Protected(fake, fake)
        return
    sqlite_url = f"sqlite+aiosqlite:///{tmp_path}/ballast.db"
    async with _sql(sqlite_url if request.param == "sqlite" else request.getfixturevalue("postgres_url")) as made:
        await _fill(made.store)
        yield made


async def _fill(store: KnowledgeStore) -> None:
    for base_id in ("kb_a", "kb_b"):
        await store.create_base(make_base(base_id), "ann")
    await put(store, "a.md", [ENGLISH, CHINESE, EVERYDAY, LISTED, MIXED, ACCENTED, LINKED])
    others = [" ".join(random.Random(seed).sample(EVERYDAY.split(), 15)) for seed in range(40)]
    await put(store, "b.md", [f"{text} {number}" for number, text in enumerate(others)])


async def _holds(protected: Protected, text: str, lengths: RunLengths = MODEL_TEXT_RUNS, base_id: str = "kb_a") -> bool:
    return await protected.words.holds_run([base_id], sequences_of(text, lengths))


async def test_what_it_holds(protected: Protected, subtests: pytest.Subtests) -> None:
    for text in (
        ENGLISH,
        "so ENGINEER — and **ends** with\nthe vault, keeper of the north",
        "Ｔhe escalation ladder begins with the du\u00adty engineer and whatever",
        CHINESE,
        "嗯北区金库的保管员再由保管员在名册呢",
        "嗯在名册上，签字确认，以后方可离开吧",
        EVERYDAY,
        "and it was as it was and so it is to",
        LISTED,
        "张伟李娜王芳赵磊钱静孙强周敏",
        "beta gamma delta epsilon zeta eta theta iota and so on: alpha beta gamma delta epsilon zeta eta theta iota",
        ACCENTED,
        "Uber die Grosse der Räume müssen nämlich spater Fachkräfte für Gebäude entscheiden, bevor jemand",
        "takes the red key signs for it and tells the porter twice",
        " ".join(map("".join, islice(permutations("owner", 4), RUNS_AT_ONCE))) + " " + ENGLISH,
    ):
        with subtests.test(text[:99]):
            assert await _holds(protected, text)
            assert not await _holds(protected, text, base_id="kb_b")


async def test_what_it_does_not_hold(protected: Protected, subtests: pytest.Subtests) -> None:
    for text in (
        "",
        "engineer and ends with the vault keeper of another northern site and of the south",
        "嗯金库的保管员再由保管员在别处吧",
        "and it was as it was and so is it to be as it is",
        "site northern the of keeper vault the with ends and engineer duty the with",
        'escalation" OR ladder* NEAR(begins) AND "duty engineer and ends with vault',
    ):
        with subtests.test(text):
            assert not await _holds(protected, text)


MEASURED = "The keeper of the sluice waits {} before the gate is lowered and {} after it has been locked again."
CHINESE_MEASURED = "船闸的看守人在放下闸门之前等待{}，在重新锁好之后再等待{}，然后通知船长。"


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        (MEASURED, [("47 minutes", "3.5 hours"), ("thirteen hundred seconds", "two days"), ("ten", "1,250 %")]),
        (CHINESE_MEASURED, [("四十七分钟", "三小时"), ("十二分钟", "一千二百小时"), ("5分钟", "2,750小时")]),
    ],
)
async def test_whether_it_holds_a_run_does_not_depend_on_figures(
    protected: Protected, text: str, amounts: list[tuple[str, str]]
) -> None:
    for told in amounts:
        for base_id in ("kb_a", "kb_b"):
            await put(protected.store, "c.md", [text.format(*told)], base_id=base_id)
        for guessed in amounts:
            assert await _holds(protected, text.format(*guessed))
            assert not await _holds(protected, text.format(*guessed)[::-1])


async def test_descriptions_are_asked_for_shorter_runs(protected: Protected) -> None:
    assert await _holds(protected, "begins with the duty engineer and ends", DESCRIPTION_RUNS)
    assert not await _holds(protected, "begins with the duty engineer and stops", DESCRIPTION_RUNS)
    assert await _holds(protected, "通知北区金库的保管员", DESCRIPTION_RUNS)


async def test_headings_are_held_too(protected: Protected) -> None:
    assert await _holds(protected, f"Guide 河 {ENGLISH}"[:60])


async def test_a_run_may_go_over_the_cut_between_chunks_but_not_between_documents(protected: Protected) -> None:
    for base_id in ("kb_a", "kb_b"):  # whichever base, its other chunks stand before these
        await put(
            protected.store,
            "c.md",
            ["Nobody but the harbour warden may open", "the sluice at spring tide."],
            base_id=base_id,
        )
        await put(
            protected.store, "d.md", ["先用甲方提供的钥匙打开北侧", "第二道闸门再通知值守的船长"], base_id=base_id
        )
        assert await _holds(protected, "harbour warden may open the sluice at spring tide", base_id=base_id)
        assert await _holds(protected, "提供的钥匙打开北侧第二道闸门再通知", base_id=base_id)
    await put(protected.store, "e.md", ["Warm brine is pumped out"], base_id="kb_b")
    await put(protected.store, "f.md", ["of the lower basin by night."], base_id="kb_b")
    assert not await _holds(protected, "brine is pumped out of the lower basin by night", base_id="kb_b")


async def test_a_run_in_any_base_counts_and_what_was_deleted_does_not(protected: Protected) -> None:
    await put(protected.store, "c.md", ["alpha beta gamma delta epsilon zeta eta theta iota"], base_id="kb_b")
    sequences = sequences_of("alpha beta gamma delta epsilon zeta eta theta iota", MODEL_TEXT_RUNS)
    assert await protected.words.holds_run(["kb_gone", "kb_a", "kb_b"], sequences)
    await protected.store.delete_document("kb_b", "c.md")
    assert not await protected.words.holds_run(["kb_gone", "kb_b"], sequences)
    assert not await protected.words.holds_run([], sequences)


async def test_every_run_of_a_base_is_found(protected: Protected) -> None:
    for text in (ENGLISH, EVERYDAY):
        words = text.split()
        for start in range(len(words) - 8):
            assert await _holds(protected, " ".join(words[start : start + 9]))
    for start in range(len(CHINESE) - 16):
        assert await _holds(protected, CHINESE[start : start + 17])
