"""What the demo model remembers of prompts, as the caches of providers do, so that the demo shows what a prefix saves.

A prompt is its tools and then its messages. What it begins with, and another prompt has begun with before, counts as
read from the cache, in whole parts, and from so many tokens on as providers begin to cache.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from shared.tokens import estimate_tokens

LEAST_TOKENS = 1024
MOST_PREFIXES = 10_000


class PrefixCache:
    """The prefixes of the newest prompts, by a chain of hashes."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def read(self, request: Mapping[str, Any]) -> int:
        """Return how many tokens of a request would come from the cache, and remember the request."""
        chain, cached, tokens, is_known = b"", 0, 0, True
        for part in _parts(request):
            chain = hashlib.sha256(chain + part.encode()).digest()
            tokens += estimate_tokens(part)
            is_known = is_known and chain in self._known
            cached = tokens if is_known else cached
            self._known[chain] = None
            self._known.move_to_end(chain)
        while len(self._known) > MOST_PREFIXES:
            self._known.popitem(last=False)
        return cached if cached >= LEAST_TOKENS else 0


def _parts(request: Mapping[str, Any]) -> Iterator[str]:
    yield json.dumps(request.get("tools") or [], ensure_ascii=False)
    messages: list[Any] = request.get("messages") or []
    for message in messages:
        yield json.dumps(message, ensure_ascii=False)
