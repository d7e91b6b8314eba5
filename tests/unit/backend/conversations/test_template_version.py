"""The fixed texts that running epochs began with: who changes one makes a new version of all."""

from hashlib import sha256

import pytest

from backend.conversations.domain.conversation_log import WITHHELD, EpochReason, EpochState, newest_epoch_state
from backend.prompt.domain.epochs import CallerAccess, plan_epoch
from shared.models.canonical import canonical_parts
from shared.models.execution import AccessMode
from shared.prompts.knowledge_base import KNOWLEDGE_SECTIONS, TEMPLATE_VERSION
from shared.prompts.knowledge_tools import list_offered_tools
from shared.prompts.summary import COMPACTED
from tests.unit.backend.conversations.logs import SETTINGS, answer, conversation, log_of, user

FULL = CallerAccess(mode=AccessMode.FULL, withheld=(), modes={})

DIGESTS = {1: "414eb04685499837", 2: "5ab1a7cd670fd978"}
"""A new version gets a line, and the old ones leave KNOWLEDGE_SECTIONS where tools or notices changed."""


def digest(version: int) -> str:
    tools = [canonical_parts(list_offered_tools((), mode), ())[0] for mode in AccessMode]
    texts = [KNOWLEDGE_SECTIONS[version].encode(), *tools, WITHHELD.encode(), COMPACTED.encode()]
    return sha256(b"\0".join(texts)).hexdigest()[:16]


@pytest.mark.parametrize("version", KNOWLEDGE_SECTIONS)
def test_the_fixed_texts_of_a_version_never_change(version: int) -> None:
    assert digest(version) == DIGESTS[version]


def test_new_epochs_begin_with_the_newest_version() -> None:
    assert max(KNOWLEDGE_SECTIONS) == TEMPLATE_VERSION


def test_the_newest_text_leaves_citing_and_the_names_of_tools_to_the_tail() -> None:
    newest = KNOWLEDGE_SECTIONS[TEMPLATE_VERSION].lower()
    assert not [word for word in ("cite", "bracket", "[3]", "knowledge_base_", "tool", "time") if word in newest]


@pytest.mark.parametrize("version", KNOWLEDGE_SECTIONS)
def test_a_running_epoch_keeps_the_text_that_it_began_with(version: int) -> None:
    reset = EpochState(reason=EpochReason.NEW_CONVERSATION, template_version=version)
    epoch = plan_epoch(conversation(), log_of([user(), answer()], epoch=3, reset=reset), SETTINGS, FULL)
    prompt = SETTINGS.system_prompt(epoch.reset)
    assert (epoch.starts, prompt) == (False, f"{SETTINGS.instructions}\n\n{KNOWLEDGE_SECTIONS[version]}")


def test_a_log_from_before_all_epochs_keeps_the_first_text() -> None:
    assert newest_epoch_state(log_of([user(), answer()])).template_version == min(KNOWLEDGE_SECTIONS)
