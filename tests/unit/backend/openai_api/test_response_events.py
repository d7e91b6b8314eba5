"""Events as they are kept."""

import tracemalloc
from typing import Any

import pytest

from backend.openai_api.domain.response_events import encode_event
from backend.openai_api.domain.response_object import ResponseBody, build_failure, report_in
from shared.models.error_reports import error_of
from shared.models.events import ErrorReport
from tests.fakes.json_paths import at
from tests.fakes.openai_types import check_event, check_response
from tests.unit.backend.turns.samples import USAGE, decoded, projection

EVENTS = 200
MAX_BYTES_AN_EVENT = 1500
"""Of it a third is the event's text; the rest are the objects around it."""


def test_a_kept_event_takes_little_more_than_its_text() -> None:
    text = "a" * 400
    tracemalloc.start()
    try:
        kept = [encode_event({"type": "t", "sequence_number": number, "delta": text}) for number in range(EVENTS)]
        taken_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == EVENTS
    assert taken_bytes < EVENTS * MAX_BYTES_AN_EVENT


@pytest.mark.parametrize(
    ("kind", "code", "listed"),
    [
        ("ModelContextOverflow", "context_length_exceeded", "invalid_prompt"),
        ("ContextTooLong", "context_length_exceeded", "invalid_prompt"),
        ("ModelContentFiltered", "content_filter", "invalid_prompt"),
        ("ModelQuotaExhausted", "insufficient_quota", "rate_limit_exceeded"),
        ("ModelRateLimited", "rate_limit_exceeded", "rate_limit_exceeded"),
        ("ModelRequestRejected", "invalid_image_format", "invalid_image_format"),
        ("ModelRequestRejected", "invalid_prompt", "invalid_prompt"),
        ("ModelUnavailable", "server_error", "server_error"),
    ],
)
def test_an_error_keeps_its_code_through_the_closed_list_of_responses(kind: str, code: str, listed: str) -> None:
    report = ErrorReport(type=kind, code=code, message="x", param=None, retryable=False)
    events, body = ended_with(report)

    assert at(body, "error", "code") == listed
    assert [event["code"] for event in events if event["type"] == "error"] == [code]
    assert report_in(body) == report
    assert error_of(report).code == code


def ended_with(report: ErrorReport) -> tuple[list[dict[str, Any]], ResponseBody]:
    made = projection()
    body, events = made.finish(build_failure(report, USAGE), 1_700_000_009)
    check_response(body)
    for event in events:
        check_event(event.body)
    return decoded(events), body
