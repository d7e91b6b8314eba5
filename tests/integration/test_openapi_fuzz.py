"""Whatever the description of the API allows, and what it forbids: no 500, and answers as described."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (types of schemathesis are generic over what it leaves unsaid)

import asyncio
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks as openapi_checks

from backend.domain.identity import KeyRole
from tests.fakes.http_door import FakeHouse, client_of

EXAMPLES_PER_OPERATION = 15
CHECKS: list[Any] = [
    not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
    openapi_checks.unsupported_method,
    openapi_checks.allow_header_conformance,
]


class FuzzedHouse:
    """One application for all cases, with one object of each kind that addresses can name."""

    def __init__(self) -> None:
        self.house = FakeHouse()
        self.app = self.house.app()
        self.key = asyncio.run(self.house.key("ada", KeyRole.ADMIN))
        self.ids = asyncio.run(self._fill())

    async def _fill(self) -> dict[str, str]:
        async with client_of(self.app, self.key) as client:
            items = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
            conversation_id = (await client.post("/v1/conversations", json={"items": items})).json()["id"]
            page = (await client.get(f"/v1/conversations/{conversation_id}/items")).json()
            return {
                "conversation_id": conversation_id,
                "item_id": page["last_id"],
                "model_id": "vendor/large",
            }

    def aim(self, case: Any) -> None:
        """Let about half of the cases name something that exists."""
        for name, given in list(case.path_parameters.items()):
            if name in self.ids and len(str(given)) % 2:
                case.path_parameters[name] = self.ids[name]


HOUSE = FuzzedHouse()
SCHEMA: Any = schemathesis.openapi.from_asgi("/openapi.json", HOUSE.app)


@pytest.mark.timeout(120)
@SCHEMA.parametrize()
@settings(
    max_examples=EXAMPLES_PER_OPERATION,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_no_request_breaks_the_server(case: Any) -> None:
    HOUSE.aim(case)
    case.call_and_validate(checks=CHECKS, headers={"Authorization": f"Bearer {HOUSE.key}"})


def test_the_description_covers_every_router() -> None:
    """A route that the description hides is not tested above: only the door of chat_shell is hidden."""
    described = set(HOUSE.app.openapi()["paths"])
    served = {str(getattr(route, "path", "")) for route in HOUSE.app.routes if getattr(route, "methods", None)}
    hidden = {path.replace(":path", "") for path in served} - described
    assert all(path.startswith(("/internal/", "/docs", "/redoc", "/openapi.json")) for path in hidden), hidden
