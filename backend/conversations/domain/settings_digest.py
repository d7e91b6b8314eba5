"""What a turn ran with, as short digests by which turns with equal settings are found."""

import hashlib

from backend.conversations.domain.responses import ConversationSettings, SettingsDigest
from shared.models.canonical import canonical_parts

DIGEST_BYTES = 8
"""64 bits: two settings of one user that are taken for equal by chance cost a cold prefix, and change no meaning."""


def settings_digest(settings: ConversationSettings) -> SettingsDigest:
    """Return the digests of settings; bounds of searches do not count, because no prompt holds them."""
    functions = canonical_parts(settings.functions, ())
    return SettingsDigest(
        header=_digest(settings.model.encode(), settings.instructions.encode(), *functions),
        bases=_digest(*[base_id.encode() for base_id in sorted(settings.knowledge_base_ids)]),
    )


def _digest(*fields: bytes) -> str:
    whole = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for field in fields:
        whole.update(len(field).to_bytes(8))
        whole.update(field)
    return whole.hexdigest()
