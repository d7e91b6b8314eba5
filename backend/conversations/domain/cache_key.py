"""The key under which a provider caches the prompts of a conversation."""

import hashlib
import hmac

KEY_HEX_DIGITS = 40
"""160 bits; OpenAI's `prompt_cache_key` takes at most 64 characters."""


def conversation_cache_key(secret: str, tenant: str, conversation_id: str) -> str:
    """Derive the key: constant for a conversation, and telling a provider neither tenant nor id."""
    message = f"{tenant}\x00{conversation_id}".encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()[:KEY_HEX_DIGITS]
