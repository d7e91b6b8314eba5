"""The prompts that docs/context.md shows turn by turn are those that turns send."""

import re
from typing import Any

import pytest

from tests.house.sources import ROOT
from tests.unit.backend.turns.placing import agents_house, letters, prompts_of, put_agent, searching

_PAGE = (ROOT / "docs" / "context.md").read_text(encoding="utf-8")
_PICTURE = re.compile(r"^```text\n(anchored|classic): ([^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TURN = re.compile(r"^turn \d+  ", re.MULTILINE)

SEARCHES = (searching("s1", said="A1"), searching(said="A2"), searching("s3", said="A3"))
SCRIPTS: dict[str, tuple[list[Any], ...]] = {
    "an agent with instructions": SEARCHES,
    "an agent with files, and an upload": (searching(said="A1"), searching(said="A2")),
    "two searches in one turn": (searching("s1", "s2", said="A1"),),
}


def pictures() -> list[tuple[str, str, list[list[str]]]]:
    """Return placement, name and the calls of each turn of all pictures of the page."""
    return [
        (placement, name, [[call.strip() for call in turn.splitlines()] for turn in _TURN.split(text)[1:]])
        for placement, name, text in _PICTURE.findall(_PAGE)
    ]


@pytest.mark.parametrize(("placement", "name", "shown"), pictures())
async def test_a_picture_is_what_is_sent(placement: str, name: str, shown: list[list[str]]) -> None:
    async with agents_house(*SCRIPTS[name]) as (house, uploads):
        await put_agent(house, placement=placement, instructions="" if "two searches" in name else "CA")
        if "upload" in name:
            uploads.project_files, uploads.files = "[project]", ("[upload]",)
        sent: list[list[str]] = []
        before: dict[str, Any] = {"model": "helper"}
        for number in range(1, len(SCRIPTS[name]) + 1):
            ended = await house.ask(input=f"U{number}", **before)
            before = {"previous_response_id": ended.id}
            uploads.files = ()
            sent.append([letters(call) for call in await prompts_of(house, ended)])
        assert sent == shown


def test_each_flow_is_shown() -> None:
    assert [name for _, name, _ in pictures() if name not in SCRIPTS] == []
    both = {(placement, name) for placement, name, _ in pictures()}
    assert {(placement, name) for placement in ("anchored", "classic") for name in list(SCRIPTS)[:2]} <= both
    assert len(both) == len(pictures()) == 6
