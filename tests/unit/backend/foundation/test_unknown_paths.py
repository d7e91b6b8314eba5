"""Paths at which nothing is, and known paths with a wrong method."""

import httpx2
import pytest

NOTHING = [
    ("POST", "/v1/responses/shrink"),
    ("POST", "/v1/responses/foo/bar"),
    ("GET", "/v1/responses/foo/cancel"),
    ("PUT", "/v1/responses/input_token"),
    ("POST", "/v1/knowledge_bases/merge"),
    ("PUT", "/v1/conversations/import"),
    ("POST", "/v1/api_keys/rotate"),
    ("PATCH", "/v1/nothing"),
]
WRONG_METHOD = [
    ("PUT", "/v1/responses", "GET, POST"),
    ("POST", "/v1/responses/resp_1", "GET, DELETE"),
    ("GET", "/v1/responses/resp_1/cancel", "POST"),
    ("PUT", "/v1/responses/input_tokens", "POST"),
    ("POST", "/v1/models/vendor/large", "GET"),
    ("PUT", "/v1/knowledge_bases/kb_1", "GET, PATCH, DELETE"),
    ("POST", "/v1/agents/helper", "GET, PUT, DELETE"),
    ("PATCH", "/v1/chat/completions", "POST"),
]


@pytest.mark.parametrize(("method", "path"), NOTHING)
async def test_where_nothing_is_the_answer_is_404(user: httpx2.AsyncClient, method: str, path: str) -> None:
    answer = await user.request(method, path)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (404, "not_found_error", "not_found")
    assert set(error) == {"message", "type", "param", "code"}
    assert "allow" not in answer.headers


@pytest.mark.parametrize(("method", "path", "allowed"), WRONG_METHOD)
async def test_a_known_path_says_which_methods_it_has(
    user: httpx2.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await user.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert allowed in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/responses", "add /v1 to the base URL of your client"),
        ("/chat/completions", "add /v1 to the base URL of your client"),
        ("/conversations/conv_1/items", "add /v1 to the base URL of your client"),
        ("/nothing", "/docs lists all paths"),
        ("/v1/nothing", "/docs lists all paths"),
        ("/v1/v1/responses", "/docs lists all paths"),
    ],
)
async def test_a_path_that_lacks_the_version_says_so(user: httpx2.AsyncClient, path: str, said: str) -> None:
    answer = await user.post(path, json={})
    assert answer.status_code == 404
    assert answer.json()["error"]["message"] == f"There is nothing at {path}; {said}."


async def test_reading_a_response_of_no_possible_id_is_404(user: httpx2.AsyncClient) -> None:
    answer = await user.get("/v1/responses/input_tokens")
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")
