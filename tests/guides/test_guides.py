"""Every command block of the documentation is run, or says why it is not and is looked at without running it."""

import asyncio
import re
from collections import Counter
from pathlib import Path

import pytest

from deploy.site.pages import list_written_pages
from tests.console.running import Running
from tests.guides.blocks import MOST_NOT_RUN, Block, Reason, all_blocks, blocks_of
from tests.guides.following import Broken, reading
from tests.guides.names import wrong_names
from tests.house.sources import ROOT

BLOCKS = all_blocks()
_OPENING_LINES = 16
_WITHOUT_COMMANDS = {"docs/clients/table.md", "docs/glossary.md"}
PAGES = list(dict.fromkeys(block.page for block in BLOCKS if block.reason is None))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, running: Running, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    blocks = [block for block in BLOCKS if block.page == page and block.reason is None]
    needs_database = any("$DATABASE" in block.code for block in blocks)
    given = request.getfixturevalue("database") if needs_database else None
    with reading(running, tmp_path, given) as reader:
        for block in blocks:
            reader.follow(block)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_what_a_block_names_exists(block: Block) -> None:
    assert wrong_names(block) == []


def test_every_page_opens_with_something_to_copy_and_run() -> None:
    guides = [page for page in list_written_pages() if page.startswith("docs/") and page not in _WITHOUT_COMMANDS]
    first = {block.page: block.line for block in reversed(BLOCKS)}
    late = [page for page in guides if first.get(page, _OPENING_LINES) >= _OPENING_LINES and "/adr/" not in page]
    assert late == []


def test_no_more_blocks_are_left_out_than_are_known() -> None:
    left_out = Counter(block.reason for block in BLOCKS if block.reason is not None)
    assert left_out == MOST_NOT_RUN


def test_another_test_that_runs_a_block_names_its_page() -> None:
    for block in BLOCKS:
        if block.reason is Reason.RUN_BY_ANOTHER_TEST:
            test = ROOT / block.other_test
            names = test.name if test.is_dir() else test.read_text(encoding="utf-8")
            assert Path(block.page).stem.replace("-", "_") in names.replace("-", "_"), block.place
        else:
            assert block.other_test == "", block.place


def test_the_page_of_alerts_counts_them_right() -> None:
    rules = (ROOT / "deploy/observability/rules.yaml").read_text(encoding="utf-8")
    assert (rules.count("- alert:"), rules.count("severity: critical")) == (15, 4)
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    assert "has fifteen alerts" in page
    assert "Four have `severity: critical`" in page


_BESIDE_AN_ENGINE = {"ballast_engine_searches_total"}
"""Shown where a search engine is set, which the pair of this test has not."""


def test_metrics_that_pages_name_are_shown(running: Running) -> None:
    shown = "".join(asyncio.run(running.pair.metrics()))
    kinds = set(re.findall(r"^# TYPE (\w+) ", shown, re.MULTILINE))
    pages = "".join(
        (ROOT / page).read_text(encoding="utf-8") for page in list_written_pages() if page != "CHANGELOG.md"
    )
    assert set(re.findall(r"`(ballast_\w+)", pages)) - kinds == _BESIDE_AN_ENGINE


def block(code: str, kind: str = "sh") -> Block:
    (found,) = blocks_of("docs/planted.md", f"```{kind}\n{code}\n```\n")
    return found


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("if true; then", "Syntax error"),
        ("make nothing", "make nothing"),
        ("BACKEND_PROT=9000 make run", "BACKEND_PROT="),
        ("BACKEND_PORT=eighty", "BACKEND_PORT: "),
        ("python -m backend.nothing", "python -m backend.nothing"),
        (".venv/bin/ballast bases lsit", "ballast … bases lsit"),
        ("ballast ask 'What?' --bsae x", "ballast … ask --bsae"),
    ],
)
def test_what_does_not_exist_is_found(code: str, wrong: str) -> None:
    (found,) = wrong_names(block(code))
    assert wrong in found


@pytest.mark.parametrize(
    "code",
    [
        "false",
        'curl -s "$BACKEND_URL/v1/nothing" | cat',
        "echo one  # prints two",
        ".venv/bin/ballast bases show nothing",
    ],
)
def test_a_block_that_fails_is_found(code: str, running: Running, tmp_path: Path) -> None:
    with reading(running, tmp_path) as reader, pytest.raises(Broken):
        reader.follow(block(code))


def test_what_a_block_sets_is_there_for_the_next(running: Running, tmp_path: Path) -> None:
    with reading(running, tmp_path) as reader:
        reader.follow(block("WORD=kept"))
        reader.follow(block('echo "$WORD"  # prints kept'))
        reader.follow(block("word = 'kept'", "python"))
        reader.follow(block("print(word)  # prints kept", "python"))


def test_a_reason_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="too-hard"):
        list(blocks_of("docs/planted.md", "<!-- not run: too-hard -->\n```sh\ntrue\n```\n"))
