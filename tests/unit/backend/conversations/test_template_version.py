"""The fixed texts that running epochs began with: who changes one makes a new version of all."""

from hashlib import sha256

import pytest

from backend.conversations.domain.conversation_log import WITHHELD
from shared.models.canonical import canonical_parts
from shared.models.execution import AccessMode
from shared.prompts.knowledge_base import KNOWLEDGE_SECTIONS, TEMPLATE_VERSION
from shared.prompts.knowledge_tools import offered_tools
from shared.prompts.summary import COMPACTED

DIGESTS = {1: "414eb04685499837"}
"""A new version gets a line, and the old ones leave KNOWLEDGE_SECTIONS where tools or notices changed."""


def digest(version: int) -> str:
    tools = [canonical_parts(offered_tools((), mode), ())[0] for mode in AccessMode]
    texts = [KNOWLEDGE_SECTIONS[version].encode(), *tools, WITHHELD.encode(), COMPACTED.encode()]
    return sha256(b"\0".join(texts)).hexdigest()[:16]


@pytest.mark.parametrize("version", KNOWLEDGE_SECTIONS)
def test_the_fixed_texts_of_a_version_never_change(version: int) -> None:
    assert digest(version) == DIGESTS[version]


def test_new_epochs_begin_with_the_newest_version() -> None:
    assert max(KNOWLEDGE_SECTIONS) == TEMPLATE_VERSION
