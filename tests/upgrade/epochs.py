"""Epochs that this release has begun go on in the last one, and the other way round; `make test-upgrade` runs it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from backend.conversations.domain.conversation_log import Entry, EntryKind, EpochReason, EpochState, newest_epoch_state
from backend.conversations.sql.codec import entry_parameters, to_entries
from backend.prompt.domain.epochs import CallerAccess, plan_epoch
from shared.models.execution import AccessMode
from shared.prompts.knowledge_base import KNOWLEDGE_SECTIONS
from tests.unit.backend.conversations.logs import SETTINGS, answer, conversation, log_of, result, user
from tests.upgrade.previous import unpack_previous_release

NEXT_EPOCH = Path(__file__).with_name("next_epoch.py")
VERSION_BEFORE = 1
FULL = CallerAccess(mode=AccessMode.FULL, withheld=(), modes={})


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_previous_release(tmp_path_factory.mktemp("previous"))


def gone_on(previous: Path, log: Sequence[Entry]) -> tuple[Entry, int]:
    """Have the last release take the next turn; return its first entry and the length of its system message."""
    written = subprocess.run(
        [sys.executable, "-P", str(NEXT_EPOCH)],
        input=orjson.dumps(entry_parameters("conv_1", log)),
        env={"PYTHONPATH": str(previous)},
        cwd=previous,
        capture_output=True,
        check=False,
    )
    assert written.returncode == 0, written.stderr.decode()
    told: dict[str, Any] = orjson.loads(written.stdout)
    row = {"reset_additions": None, "placed": None, **told["row"]}
    (entry,) = to_entries("conv_1", [row])
    return entry, told["system_characters"]


@pytest.mark.parametrize("version", KNOWLEDGE_SECTIONS)
@pytest.mark.parametrize("reason", EpochReason)
def test_the_last_release_takes_the_next_turn_of_every_epoch(previous: Path, reason: EpochReason, version: int) -> None:
    reset = EpochState.model_validate({"reason": reason, "placement": "classic", "template_version": version})
    log = log_of([user(), answer("", "a"), result("a"), answer()], epoch=3, reset=reset)
    entry, system_characters = gone_on(previous, log)
    assert entry.position == len(log)
    assert system_characters == len(KNOWLEDGE_SECTIONS[VERSION_BEFORE])
    if version == VERSION_BEFORE:
        assert (entry.epoch, entry.reset) == (3, None)
        return
    assert entry.reset is not None
    assert (entry.epoch, entry.reset.reason) == (4, EpochReason.TEMPLATE_VERSION)
    assert entry.reset.template_version == VERSION_BEFORE
    # This release goes on in the epoch of the last one: being rolled back and forth changes no further byte.
    both = (*log, entry)
    here = plan_epoch(conversation(epoch=4), both, SETTINGS, FULL)
    assert (here.starts, here.reset) == (False, newest_epoch_state(both))


def test_kinds_that_the_last_release_does_not_know_are_read_there(previous: Path) -> None:
    for kind in (EntryKind.CUSTOM_INSTRUCTIONS, EntryKind.PROJECT_FILES, EntryKind.FILE, EntryKind.SUMMARY):
        log = log_of([(kind, user()[1]), user(), answer()], epoch=1, reset=EpochState(reason=EpochReason.COMPACTION))
        entry, _ = gone_on(previous, log)
        assert entry.position == len(log)
