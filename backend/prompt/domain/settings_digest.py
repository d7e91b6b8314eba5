"""Short digests of a turn's settings, by which turns with equal settings are found."""

import hashlib

from backend.conversations.domain.placed_blocks import ANCHORED, NO_BLOCKS, PlacedBlocks, words_digest
from backend.conversations.domain.responses import ConversationSettings, SettingsDigest
from backend.prompt.domain.system_message import digest_opening
from shared.models.canonical import canonical_parts

_PLAIN = (ANCHORED, "")

DIGEST_BYTES = 8
"""64 bits: two settings of one user that are taken for equal by chance cost a cold prefix, and change no meaning."""


def settings_digest(settings: ConversationSettings, blocks: PlacedBlocks = NO_BLOCKS) -> SettingsDigest:
    """Return the digests of settings and of an agent's words.

    Bounds of searches do not count, because no prompt holds them. Without an agent the digests are those that the
    release before has stored.
    """
    functions = canonical_parts(settings.definitions, ())
    form = (blocks.placement, digest_opening(blocks.system_prompt))
    words = words_digest(blocks.instructions)
    return SettingsDigest(
        header=_digest(
            settings.model.encode(),
            settings.instructions.encode(),
            *functions,
            *(part.encode() for part in form if form != _PLAIN),
        ),
        bases=_digest(
            *[base_id.encode() for base_id in sorted(settings.knowledge_base_ids)], *([words.encode()] if words else ())
        ),
    )


def _digest(*fields: bytes) -> str:
    whole = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for field in fields:
        whole.update(len(field).to_bytes(8))
        whole.update(field)
    return whole.hexdigest()
