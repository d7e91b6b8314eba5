"""What an operator reads about tools: names and counts."""

import structlog

from chat_shell.tools.domain.tool_answers import FoundDocument, ToolAnswer
from chat_shell.turns.telemetry.observer import LoggingTurnObserver
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_SEARCH
from tests.fakes.model_requests import execution_request, knowledge


def lines_of(answer: ToolAnswer) -> list[dict[str, object]]:
    request = execution_request(knowledge=knowledge("kb_a"))
    with structlog.testing.capture_logs() as lines:
        LoggingTurnObserver().tool_answered(request, KNOWLEDGE_BASE_SEARCH, answer)
    return [dict(line) for line in lines]


def test_a_search_is_a_line_without_text():
    found = FoundDocument(file_id="doc_1", title="secret-plan.md", metadata={}, content="hush")
    (line,) = lines_of(ToolAnswer(documents=(found,)))
    assert (line["event"], line["tool"], line["documents"]) == ("Tool called", KNOWLEDGE_BASE_SEARCH, 1)
    assert "hush" not in str(line)
    assert "secret-plan" not in str(line)
