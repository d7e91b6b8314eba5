"""What an operator reads about tools: names and counts, and in a restricted turn that nothing was let out."""

import structlog

from chat_shell.adapters.telemetry.observer import LoggingTurnObserver
from chat_shell.domain.documents import FoundDocument
from chat_shell.ports import ToolAnswer
from shared.models.execution import AccessMode
from shared.prompts.knowledge_base import CANNOT_ANSWER, KNOWLEDGE_BASE_SEARCH
from tests.fakes.model_requests import execution_request, knowledge


def lines_of(answer: ToolAnswer, mode: AccessMode) -> list[dict[str, object]]:
    request = execution_request(knowledge=knowledge("kb_a", mode=mode))
    with structlog.testing.capture_logs() as lines:
        LoggingTurnObserver().tool_answered(request, KNOWLEDGE_BASE_SEARCH, answer)
    return [dict(line) for line in lines]


def test_a_search_is_a_line_without_text():
    found = FoundDocument(file_id="doc_1", title="secret-plan.md", metadata={}, content="hush")
    (line,) = lines_of(ToolAnswer(documents=(found,)), AccessMode.FULL)
    assert (line["event"], line["tool"], line["documents"]) == ("Tool called", KNOWLEDGE_BASE_SEARCH, 1)
    assert "hush" not in str(line)
    assert "secret-plan" not in str(line)


def test_a_restricted_search_says_that_it_was_refused():
    _, line = lines_of(ToolAnswer(text=CANNOT_ANSWER), AccessMode.RESTRICTED)
    assert line["event"] == "Safe summary completed"
    assert (line["decision"], line["reason"], line["preview"]) == ("refuse", "model_unavailable", "")
