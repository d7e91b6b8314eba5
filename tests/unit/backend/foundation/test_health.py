"""What an orchestrator asks, and the description of the API."""

import httpx2
import pytest
from prometheus_client import Counter

from backend.foundation.telemetry.outcomes import OUTCOMES
from tests.fakes.http_api import FakeHouse


async def test_alive_and_ready_need_no_key(stranger: httpx2.AsyncClient) -> None:
    for address, more in (("/healthz", {}), ("/readyz", {"components": {"database": "ok", "event_store": "ok"}})):
        answer = await stranger.get(address)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok", **more})


@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
async def test_a_balancer_may_ask_for_the_head_alone(stranger: httpx2.AsyncClient, address: str) -> None:
    assert (await stranger.head(address)).status_code == 200


async def test_draining_is_not_ready_and_still_alive(stranger: httpx2.AsyncClient, house: FakeHouse) -> None:
    house.admission.close()
    answer = await stranger.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert (await stranger.get("/healthz")).status_code == 200


async def test_without_its_database_it_is_not_ready(stranger: httpx2.AsyncClient, house: FakeHouse) -> None:
    house.probe.away = True
    assert (await stranger.get("/readyz")).status_code == 503
    house.probe.away = False
    assert (await stranger.get("/readyz")).status_code == 200


async def test_without_chat_shell_it_stays_ready(stranger: httpx2.AsyncClient, house: FakeHouse) -> None:
    house.chat_shell.away = True
    assert (await stranger.get("/readyz")).status_code == 200


async def test_without_its_event_store_it_stays_ready_and_says_so(
    stranger: httpx2.AsyncClient, house: FakeHouse
) -> None:
    house.event_store.is_away = True
    answer = await stranger.get("/readyz")
    assert (answer.status_code, answer.json()["components"]) == (200, {"database": "ok", "event_store": "away"})


async def test_metrics_of_outcomes_are_for_administrators_alone(
    admin: httpx2.AsyncClient, user: httpx2.AsyncClient, stranger: httpx2.AsyncClient
) -> None:
    outcome = Counter("outcomes_of_a_test_total", "What nobody but administrators should see", registry=OUTCOMES)
    answers = [await client.get("/metrics") for client in (stranger, user, admin)]
    OUTCOMES.unregister(outcome)
    assert all(answer.headers["content-type"].startswith("text/plain") for answer in answers)
    assert all("# TYPE ballast_http_requests_total counter" in answer.text for answer in answers)
    assert ["# TYPE outcomes_of_a_test_total" in answer.text for answer in answers] == [False, False, True]


async def test_the_description_says_keys_and_errors(stranger: httpx2.AsyncClient) -> None:
    document = (await stranger.get("/openapi.json")).json()
    scheme = document["components"]["securitySchemes"]["ApiKey"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for address, operations in document["paths"].items():
        for method, operation in operations.items():
            assert {"4XX", "5XX"} <= set(operation["responses"]), (method, address)
            assert "422" not in operation["responses"], (method, address)
            assert ("security" in operation) == address.startswith(("/v1/", "/mcp")), (method, address)
