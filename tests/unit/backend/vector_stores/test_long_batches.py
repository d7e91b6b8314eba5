"""Batches as long as OpenAI allows them, and wrong ones of that length."""

from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import TypeAdapter, ValidationError

from backend.vector_stores.http.shapes import NarrowCreateBatch
from tests.fakes.http_api import FakeHouse
from tests.unit.backend.conftest import Members

STORE = "/v1/vector_stores/{}"
SOME_FILE = "file-0"
"""An id that nobody has."""


@pytest.fixture(scope="module")
def built_app() -> FastAPI:
    """An application that takes long bodies."""
    return FakeHouse(max_body_bytes=2_000_000).app()


async def test_a_batch_takes_as_many_files_and_attributes_as_openai_allows(members: Members) -> None:
    form: dict[str, Any] = {"data": {"purpose": "assistants"}, "files": {"file": ("tea.md", b"Tea is green.")}}
    file_id = (await members.owner.post("/v1/files", **form)).json()["id"]
    attributes = {f"a,{{[{number}": f"some, [text] {{{number}}}" for number in range(16)}
    files = [{"file_id": file_id, "attributes": attributes, "chunking_strategy": {"type": "auto"}}] * 500
    answer = await members.owner.post(f"{STORE.format(members.base_id)}/file_batches", json={"files": files})
    assert (answer.status_code, answer.json()["file_counts"]["total"]) == (201, 1)
    shown = (await members.owner.get(f"{STORE.format(members.base_id)}/files/{file_id}")).json()
    assert shown["attributes"] == attributes


MANY = {str(number): None for number in range(10_000)}
BAD = {"attributes": {str(number): None for number in range(16)}}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (MANY, None),
        ({"files": [MANY]}, "files[0]"),
        ({"files": [{"file_id": SOME_FILE, "attributes": MANY}]}, "files[0].attributes"),
        ({"file_ids": [SOME_FILE], "attributes": MANY}, "attributes"),
        ({"files": [{"file_id": SOME_FILE}, *[BAD] * 499]}, "files[1].attributes.0"),
        ({"files": [MANY] * 2}, None),
    ],
)
async def test_a_wrong_batch_is_refused_at_its_first_wrong_value(
    members: Members, body: dict[str, Any], param: str | None
) -> None:
    answer = await members.owner.post(f"{STORE.format(members.base_id)}/file_batches", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert len(error["message"]) < 200


@pytest.mark.parametrize(
    "body",
    [
        {"files": [{"attributes": {str(number): None for number in range(16)}}] * 500},
        {"files": [{"attributes": MANY}]},
        {"files": [MANY]},
        {"file_ids": [1] * 500, "files": [1] * 500},
    ],
)
def test_a_wrong_batch_has_few_complaints(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(NarrowCreateBatch).validate_python(body)
    assert refused.value.error_count() <= 600
