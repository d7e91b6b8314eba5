"""The share of a request that was sent before, which the resent histories are held to."""

import orjson

from tests.clients.prefixes import reused_share
from tests.fakes.model_server import RecordedRequest


def sent(*texts: str, cache_key: str = "k") -> RecordedRequest:
    messages = [{"role": "user", "content": text} for text in texts]
    body = orjson.dumps({"model": "m", "prompt_cache_key": cache_key, "messages": messages, "stream": True})
    return RecordedRequest(
        method="POST", path="/v1/chat/completions", headers={}, body=body, connection=0, received_at=0
    )


def test_requests_that_only_grow_share_all() -> None:
    others = [sent("something else")]
    assert reused_share([sent("one mark"), *others, sent("one mark", "two"), sent("one mark", "two", "3")], "mark") == 1


def test_what_changes_early_is_seen() -> None:
    assert reused_share([sent("one mark"), sent("One mark", "two")], "mark") < 0.98
    assert reused_share([sent("one mark"), sent("one mark", "two", cache_key="other")], "mark") < 0.98


def test_nothing_is_reused_of_a_single_request() -> None:
    assert reused_share([sent("one mark")], "mark") == 0
