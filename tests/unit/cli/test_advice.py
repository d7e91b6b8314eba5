"""Each refusal ends with one line that says what to do, by the kind of the error and by what was asked."""

from collections.abc import Iterator

import httpx2
import pytest

from cli.advice import ADVICE, BY_EXIT_CODE, ExitCode, advice_on
from cli.failures import CommandFailed
from shared.errors import ModelError
from tests.fakes.ballast_api import FakeBallast, Json, refusal, stream
from tests.unit.cli.conftest import Command

NOT_YOURS = "Your access to this knowledge base is restricted."
ADMIN = "This takes an API key or a token with role admin."
KB = "/v1/knowledge_bases/kb_1"


@pytest.fixture(autouse=True)
def handbook(backend: FakeBallast) -> None:
    backend.bases = {"kb_1": "Handbook"}


REFUSED = [
    ("keys list", "GET /v1/api_keys", refusal(403, ADMIN, "permission_error"), "var/demo/backend_admin_key"),
    ("audit", "GET /v1/audit/safe_summaries", refusal(403, ADMIN, "permission_error"), "key of an administrator"),
    ("bases search Handbook x", f"POST {KB}/search", refusal(403, NOT_YOURS, "permission_error"), "ask an owner"),
    ("members list kb_1", f"GET {KB}/members", refusal(403, NOT_YOURS, "permission_error"), "ballast bases list"),
    ("agents show cook", "GET /v1/agents/cook", refusal(404, "No agent.", "not_found_error"), "ballast agents list"),
    ("bases list", "GET /v1/knowledge_bases", refusal(429, "Too many.", "rate_limit_error"), "wait a minute"),
    ("bases list", "GET /v1/knowledge_bases", refusal(500, "It broke.", "server_error"), "ballast doctor"),
    ("ask hi", "POST /v1/responses", refusal(400, "input: is wrong"), "correct what the message names"),
]


@pytest.mark.parametrize(("line", "call", "given", "advice"), REFUSED)
def test_a_refusal_ends_with_what_to_do(
    command: Command, backend: FakeBallast, line: str, call: str, given: httpx2.Response, advice: str
) -> None:
    backend.on(call, lambda _, __: given)
    *_, last = command(*line.split()).err.splitlines()
    assert last.startswith("What to do: ")
    assert advice in last


def failed_with(kind: str) -> httpx2.Response:
    error = {"type": kind, "code": "server_error", "message": "It failed."}
    response = {"id": "resp_1", "status": "failed", "error": error}
    return stream({"type": "response.failed", "sequence_number": 1, "response": response})


def test_an_answer_that_fails_at_the_model_says_what_to_do(command: Command, backend: FakeBallast) -> None:
    backend.on("POST /v1/responses", lambda _, __: failed_with("ModelUnavailable"))
    ran = command("ask", "hi")
    assert ran.err == ("It failed.\nWhat to do: start the model's server, or correct CHAT_SHELL_MODEL_BASE_URL\n")


def kinds_below(error: type[Exception]) -> Iterator[str]:
    for each in error.__subclasses__():
        yield each.__name__
        yield from kinds_below(each)


def test_each_failure_of_a_provider_has_its_advice() -> None:
    assert not [kind for kind in kinds_below(ModelError) if advice_on((kind,)) is None]


def test_no_failure_is_without_advice() -> None:
    failing = set(ExitCode) - {ExitCode.DONE, ExitCode.INTERRUPTED}
    assert failing == set(BY_EXIT_CODE)
    assert all(CommandFailed("It failed.", code).mend for code in failing)
    assert all(row.text for row in ADVICE)


def test_an_analyst_is_told_what_they_may_ask(command: Command, backend: FakeBallast) -> None:
    backend.roles = {"kb_1": "restricted_analyst"}
    done: Json = {"id": "resp_1", "status": "completed", "output": []}
    backend.on("POST /v1/responses", lambda _, __: stream({"type": "response.completed", "response": done}))
    told = command("ask", "What does it cost?", "--base", "Handbook").err
    assert told.startswith('You are a restricted analyst of "Handbook": ask what is weak')
    assert command("ask", "What does it cost?", "--base", "Handbook", "--json").err == ""
    backend.roles = {}
    assert command("ask", "What does it cost?", "--base", "Handbook").err == ""
