"""Usage records of several providers."""

from typing import Any

import pytest

from chat_shell.models.transport.usage import Counts, read_usage
from shared.models.events import Usage


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({}, Usage()),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            Usage(input_tokens=10, cached_tokens=8, output_tokens=5, reasoning_tokens=2),
        ),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 6}, Usage(input_tokens=10, cached_tokens=6)),
        (
            {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3},
            Usage(input_tokens=10, output_tokens=1, cached_tokens=4, cache_write_tokens=3),
        ),
        ({"prompt_tokens": 10, "prompt_tokens_details": None}, Usage(input_tokens=10)),
        ({"prompt_tokens": 0, "prompt_tokens_details": {"cached_tokens": 0}}, Usage(input_tokens=0, cached_tokens=0)),
        ({"prompt_tokens": 3.0, "completion_tokens": True}, Usage(input_tokens=3)),
        ({"prompt_tokens": -1, "completion_tokens": "5"}, Usage()),
        ({"prompt_tokens": float("inf"), "completion_tokens": 2**63}, Usage()),
    ],
)
def test_usage(reported: dict[str, Any], usage: Usage):
    assert read_usage(reported, Counts(set())) == usage
