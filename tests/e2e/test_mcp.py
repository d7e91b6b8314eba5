"""`/mcp` with the official client, against a real pair and a replica that reaches chat_shell by the other protocol."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import orjson
import pytest

from shared.prompts.knowledge_base import CANNOT_ANSWER, RELEASED_NOTE
from tests.e2e.client.knowledge_bases import Base, new_base
from tests.e2e.pair import ADMIN_KEY, Pair, PairOptions, start_model, start_pair, start_replica
from tests.examples import first_of
from tests.fakes.mcp_client import Mode, call, mcp_client, message, post, refusal_in, said, texts_of
from tests.fakes.model_server import FakeModelControl, Reply
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.combination

RULES = "# Reserve rules\n\nThe Quillmark reserve holds 48,200 litres. Only Imogen Vance may open the zebrafish valve."
TELL_TALES = ("Quillmark", "48,200", "Imogen", "zebrafish", "reserve-rules")
ASKED = "Where are we weak in how the reserve is opened?"
SUMMARY = {
    "decision": "answer",
    "reason": "diagnosis",
    "summary": "Access depends on a single person, so an absence could stop everything.",
    "observations": [],
    "risks": ["Nobody may be able to act in an emergency."],
    "recommended_actions": ["Train a deputy and rehearse the handover."],
    "confidence": "medium",
}
BUDGETS = "conversation=2,day=20,month=60"


@pytest.fixture(scope="module")
def replicas(
    launch_for_module: Launch,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: PostgresServer,
    valkey_server: ValkeyServer,
) -> Iterator[tuple[Pair, Pair, str]]:
    """A pair whose backend calls chat_shell over HTTP, a replica that calls it over gRPC, the secondary's address."""
    directory = tmp_path_factory.mktemp("mcp")
    second, second_url = start_model(launch_for_module, directory / "second", "second-model")
    name = postgres_server.new_database()
    shared = {
        "BACKEND_DATABASE_URL": postgres_server.url(name),
        "BACKEND_REDIS_URL": valkey_server.url,
        "BACKEND_RESTRICTED_BUDGETS": BUDGETS,
        "BACKEND_CORS_ORIGINS": "https://app.example",
    }
    shell = {"CHAT_SHELL_SAFE_SUMMARY_MODEL": "second-model", "CHAT_SHELL_SAFE_SUMMARY_BASE_URL": second_url}
    second.wait_ready()
    options = PairOptions(over_http=True, backend=shared, chat_shell=shell)
    first = start_pair(launch_for_module, directory / "first", options)
    server = f"grpc://{first.chat_shell_grpc_target}"
    yield first, start_replica(launch_for_module, directory / "other", first, BACKEND_CHAT_SHELL_URL=server), second_url
    postgres_server.drop_database(name)


@pytest.fixture
async def second(replicas: tuple[Pair, Pair, str]) -> AsyncIterator[FakeModelControl]:
    """The secondary model, with nothing scripted."""
    async with FakeModelControl(replicas[2]) as control:
        await control.reset()
        yield control


@pytest.fixture
def reserve(replicas: tuple[Pair, Pair, str], request: pytest.FixtureRequest) -> tuple[str, Base]:
    """A base, and a restricted analyst of their own for the test."""
    analyst = f"analyst-{request.node.name}"[:200]
    members: dict[str, Any] = {analyst: "restricted_analyst", "rae": "reader"}
    return analyst, new_base(replicas[0], "reserve", {"reserve-rules.md": RULES}, **members)


class Received:
    """Every byte that a client gets."""

    def __init__(self) -> None:
        self.text = ""

    async def note(self, answer: httpx2.Response) -> None:
        await answer.aread()
        self.text += f"{answer.headers}{answer.text}"


@asynccontextmanager
async def http_of(pair: Pair, user: str, received: Received | None = None) -> AsyncGenerator[httpx2.AsyncClient]:
    hooks = {"response": [received.note]} if received is not None else {}
    headers = {"Authorization": f"Bearer {pair.key(user)}"}
    async with httpx2.AsyncClient(
        base_url=pair.backend_url, headers=headers, timeout=60, trust_env=False, event_hooks=hooks, verify=False
    ) as client:
        yield client


def audits(pair: Pair, base: Base) -> list[dict[str, Any]]:
    with pair.http(ADMIN_KEY) as http:
        listed = http.get("/v1/audit/safe_summaries", params={"knowledge_base_id": base.id, "order": "asc"})
    assert listed.status_code == 200, listed.text
    return listed.json()["data"]


def summary_reply(**changes: Any) -> Reply:
    return Reply(text=(orjson.dumps({**SUMMARY, **changes}).decode(),))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_reader_searches_lists_and_reads(
    replicas: tuple[Pair, Pair, str], reserve: tuple[str, Base], mode: Mode
) -> None:
    _, base = reserve
    async with http_of(replicas[0], "rae") as http, mcp_client(http, mode) as client:
        assert len((await client.list_tools()).tools) == 4
        found = said(await call(client, "search_knowledge", query="the valve", knowledge_base_ids=[base.id]))
        listed = said(await call(client, "list_documents", knowledge_base_id=base.id))
        page = said(await call(client, "read_document", knowledge_base_id=base.id, document="reserve-rules.md"))
        resource = await client.read_resource(found["results"][0]["uri"])
    assert found["results"][0]["document"] == "reserve-rules.md"
    assert [one["name"] for one in listed["documents"]] == ["reserve-rules.md"]
    assert page["text"] == RULES
    assert RULES in resource.model_dump_json().encode().decode("unicode_escape")


async def test_a_session_of_one_replica_goes_on_at_the_other(
    replicas: tuple[Pair, Pair, str], reserve: tuple[str, Base]
) -> None:
    _, base = reserve
    hello: dict[str, Any] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    async with http_of(replicas[0], "rae") as one, http_of(replicas[1], "rae") as other:
        begun = await post(one, message("initialize", **hello))
        assert begun.json()["result"]["protocolVersion"] == "2025-11-25"
        assert (await post(one, {"jsonrpc": "2.0", "method": "notifications/initialized"})).status_code == 202
        asked = message("tools/call", 2, name="list_documents", arguments={"knowledge_base_id": base.id})
        answers = [await post(each, asked, mcp_session_id="any") for each in (other, one)]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["result"]["structuredContent"]["documents"]


@pytest.mark.parametrize("server", first_of(0, 1), ids=["http", "grpc"])
async def test_a_restricted_analyst_gets_a_summary_and_no_byte_of_the_base(
    replicas: tuple[Pair, Pair, str], second: FakeModelControl, reserve: tuple[str, Base], server: int
) -> None:
    analyst, base = reserve
    leaky = summary_reply(summary="The Quillmark reserve holds 48,200 litres.")
    await second.script(summary_reply(), leaky, leaky)
    received = Received()
    async with http_of((replicas[0], replicas[1])[server], analyst, received) as http, mcp_client(http) as client:
        answered = await call(client, "search_knowledge", query=ASKED)
        blocked = await call(client, "search_knowledge", query=f"{ASKED} And who could step in?")
        refusals = [
            refusal_in(await call(client, "list_documents", knowledge_base_id=base.id)),
            refusal_in(await call(client, "read_document", knowledge_base_id=base.id, document="reserve-rules.md")),
        ]
        resources = (await client.list_resources()).resources
        bases = said(await call(client, "list_knowledge_bases"))["knowledge_bases"]
    assert said(answered)["results"] == []
    assert said(answered)["restricted"] == {
        "knowledge_base_ids": [base.id], "summary": SUMMARY, "note": RELEASED_NOTE
    }  # fmt: skip
    assert texts_of(blocked) == [CANNOT_ANSWER]
    assert set(refusals) == {"Your access to this knowledge base is restricted."}
    assert resources == []
    assert set(bases[0]) == {"id", "name", "routing_hint", "routing_keywords", "role"}
    assert [word for word in TELL_TALES if word in received.text] == []
    assert "Quillmark" in (await second.requests())[0].body.decode()
    logs = "".join(pair.backend.log() for pair in (replicas[0], replicas[1])) + replicas[0].chat_shell.log()
    assert [word for word in TELL_TALES if word in logs] == []
    records = audits(replicas[0], base)
    assert [record["decision"] for record in records] == ["answer", "refuse"]
    assert all(record["conversation_id"].startswith("stretch_") for record in records)
    assert all(record["turn_id"].startswith("lookup_") for record in records)


async def test_no_new_connection_and_no_other_replica_gives_a_new_budget(
    replicas: tuple[Pair, Pair, str], second: FakeModelControl, reserve: tuple[str, Base]
) -> None:
    analyst, base = reserve
    await second.script(*[summary_reply()] * 4)
    answers: list[str] = []
    for number, pair in enumerate((replicas[0], replicas[1], replicas[0], replicas[1])):
        async with http_of(pair, analyst) as http, mcp_client(http) as client:
            result = await call(client, "search_knowledge", query=f"{ASKED} Think {'again ' * number}please.")
            answers.append(texts_of(result)[0])
    assert [text == CANNOT_ANSWER for text in answers] == [False, False, True, True]
    assert [record["reason"] for record in audits(replicas[0], base)][2:] == ["budget_conversation"] * 2


async def test_a_member_of_both_kinds_gets_both(
    replicas: tuple[Pair, Pair, str], second: FakeModelControl, reserve: tuple[str, Base]
) -> None:
    analyst, base = reserve
    own = new_base(replicas[0], "notes", {"notes.md": "# Opening\n\nThe reserve opens at nine."}, **{analyst: "reader"})
    await second.script(summary_reply())
    async with http_of(replicas[1], analyst) as http, mcp_client(http) as client:
        found = said(await call(client, "search_knowledge", query=ASKED, knowledge_base_ids=[own.id, base.id]))
    assert [one["knowledge_base_id"] for one in found["results"]] == [own.id]
    assert found["restricted"]["summary"] == SUMMARY
    assert found["restricted"]["knowledge_base_ids"] == [base.id]


async def test_the_origins_of_the_setting_may_call(replicas: tuple[Pair, Pair, str]) -> None:
    async with http_of(replicas[0], "rae") as http:
        assert (await post(http, message("ping"), origin="https://app.example")).status_code == 200
        assert (await post(http, message("ping"), origin="https://other.example")).status_code == 403
