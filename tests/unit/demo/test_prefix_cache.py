"""What the demo model says it has read from its cache."""

from typing import Any

from deploy.demo.prefix_cache import LEAST_TOKENS, PrefixCache
from shared.tokens import estimate_tokens

LONG = "The lockers are opened by hand during an incident. " * 200


def request(*texts: str, tools: list[str] | None = None) -> dict[str, Any]:
    return {"tools": tools or [], "messages": [{"role": "user", "content": text} for text in texts]}


def test_what_a_prompt_begins_with_is_read_from_the_cache():
    cache = PrefixCache()
    assert cache.read(request(LONG)) == 0
    cached = cache.read(request(LONG, "more"))
    assert LEAST_TOKENS <= estimate_tokens(LONG) <= cached
    assert cache.read(request(LONG, "more", "and more")) > cached


def test_a_change_ends_it():
    cache = PrefixCache()
    cache.read(request(LONG, "same", LONG))
    whole = cache.read(request(LONG, "same", LONG))
    assert 0 < cache.read(request(LONG, "other", LONG)) < whole
    assert cache.read(request("other", LONG)) == 0
    assert cache.read(request(LONG, tools=["a"])) == 0


def test_short_prompts_are_not_cached():
    cache = PrefixCache()
    assert [cache.read(request("hello")) for _ in range(3)] == [0, 0, 0]
