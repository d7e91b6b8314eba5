"""The routes by which administrators delete and export what is a person's."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

import orjson
from fastapi import Depends
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import PrincipalName
from backend.identity.http.caller import AdminDep
from backend.identity.services import DEFAULT_TENANT
from backend.retention.domain import Person
from backend.retention.services.exporting import PersonExport
from backend.retention.services.user_erasure import UserErasure

router = new_router("Users")


ErasureDep = Annotated[UserErasure, Depends(service_of(UserErasure))]
ExportDep = Annotated[PersonExport, Depends(service_of(PersonExport))]


class DeletedUser(BaseModel):
    """What a deletion has deleted, by kind; one that goes on after an interruption counts what it did itself."""

    id: str
    object: Literal["user.deleted"] = "user.deleted"
    tenant: str
    deleted: Literal[True] = True
    counts: dict[str, int]


@router.delete("/v1/users/{user_id}", summary="Delete all that is a user's")
async def delete_user(
    admin: AdminDep,
    user_id: PrincipalName,
    erasure: ErasureDep,
    tenant: PrincipalName = DEFAULT_TENANT,
    owned: Literal["refuse", "delete"] = "refuse",
) -> DeletedUser:
    """Stop the user's turns and delete what is theirs; 409 where they are the only owner of bases or agents."""
    counts = await erasure.remove(Person(tenant, user_id), with_owned=owned == "delete")
    return DeletedUser(id=user_id, tenant=tenant, counts=dict(counts))


@router.get(
    "/v1/users/{user_id}/export",
    summary="Export all that is a user's",
    response_class=StreamingResponse,
    responses={200: {"description": "One JSON object a line", "content": {"application/x-ndjson": {}}}},
)
async def export_user(
    admin: AdminDep, user_id: PrincipalName, export: ExportDep, tenant: PrincipalName = DEFAULT_TENANT
) -> StreamingResponse:
    """Return JSON lines; the export is whole where the last one has the type `end`."""
    return StreamingResponse(_lines(export, Person(tenant, user_id)), media_type="application/x-ndjson")


async def _lines(export: PersonExport, person: Person) -> AsyncGenerator[bytes]:
    async with aclosing(export.lines(person)) as lines:
        async for line in lines:
            yield orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
