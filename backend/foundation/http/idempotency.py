"""The header Idempotency-Key, with which a client may send a request again."""

import re
from collections.abc import Awaitable, Callable, Collection
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Request, Response

from backend.foundation.domain.idempotency import KeyClaim, KeyedRequest
from backend.foundation.domain.json_objects import JsonText, decode_cooperatively
from backend.foundation.http.json_body import JSON_TEXT
from backend.foundation.services.idempotency import KEY_HEADER, OncePerKey
from backend.foundation.services.steps import run_cooperatively
from shared.errors import InvalidRequest
from shared.models.values import JsonObject

MAX_KEY_CHARS = 255
REPLAYED_HEADER = "idempotent-replayed"
Created = TypeVar("Created")
Repeated = TypeVar("Repeated")
_PATTERN = f"^[!-~]{{1,{MAX_KEY_CHARS}}}$"
_KEY = re.compile(_PATTERN)

_KeyHeader = Annotated[
    str | None,
    Header(
        alias=KEY_HEADER,
        json_schema_extra={"minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": _PATTERN},
        description="The same key and body again within 24 hours: the same answer, and nothing done twice.",
    ),
]


async def read_idempotency_key(request: Request, given: _KeyHeader = None) -> str | None:
    """Return the request's key, which the header gives, None without one.

    Raises:
        InvalidRequest: the header is wrong or repeated.
    """
    if given is None:
        return None
    if len(request.headers.getlist(KEY_HEADER)) > 1:
        raise InvalidRequest(f"The header {KEY_HEADER} must not be sent more than once.", param=KEY_HEADER)
    if not _KEY.fullmatch(given):
        raise InvalidRequest(
            f"The key must be 1 to {MAX_KEY_CHARS} visible ASCII characters, without blanks.", param=KEY_HEADER
        )
    return given


KeyDep = Annotated[str | None, Depends(read_idempotency_key)]


class Once:
    """The work of one request, done once under its key.

    `response` is the one whose headers the framework adds to the answer; a route that makes its own answer marks it.
    `principal` is the tenant and the user of the caller, to whom the key belongs.
    """

    def __init__(
        self,
        service: OncePerKey,
        request: Request,
        response: Response,
        key: str | None,
        principal: tuple[str, str],
    ) -> None:
        self._service = service
        self._request = request
        self._response = response
        self._key = key
        self._principal = principal

    @property
    def has_key(self) -> bool:
        """Whether the request has a key."""
        return self._key is not None

    async def __call__(
        self,
        create: Callable[[KeyClaim | None], Awaitable[Created]],
        again: Callable[[str], Awaitable[Repeated]],
        not_compared: Collection[str] = (),
    ) -> Created | Repeated:
        """Do as `OncePerKey`; fields of the JSON body `not_compared` may differ when the request is sent again."""
        if self._key is None:
            return await create(None)
        text: JsonText = self._request.scope["state"][JSON_TEXT]
        fields = await run_cooperatively(decode_cooperatively(text)) if text.raw else {}
        compared: JsonObject = {name: value for name, value in fields.items() if name not in not_compared}
        return await self.of_fields(compared, create, again)

    async def of_fields(
        self,
        fields: JsonObject,
        create: Callable[[KeyClaim | None], Awaitable[Created]],
        again: Callable[[str], Awaitable[Repeated]],
    ) -> Created | Repeated:
        """Do as `OncePerKey` for a request whose body is told by `fields`, whatever its format."""

        async def replay(created: str) -> Repeated:
            mark_replayed(self._response)
            return await again(created)

        return await self._service(self._read_key(fields), create, replay)

    def _read_key(self, fields: JsonObject) -> KeyedRequest | None:
        if self._key is None:
            return None
        tenant, user_id = self._principal
        call = f"{self._request.method} {self._request.url.path}"
        return KeyedRequest(tenant=tenant, user_id=user_id, key=self._key, call=call, fields=fields)


def mark_replayed(response: Response) -> None:
    """Say in the answer that the request was known, and its work not done again."""
    response.headers[REPLAYED_HEADER] = "true"
