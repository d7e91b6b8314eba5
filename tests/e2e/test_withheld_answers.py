"""What an answer rests on goes: no route gives the answer any more, and no model is sent it again.

The routes are those of the running backend, by its OpenAPI document: a new one that takes a body has to be tried here,
or named among those that hold no answers.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
import orjson
import pytest

from shared.prompts.summary import SUMMARY_INSTRUCTION
from tests.e2e.client.every_route import Made, Route, find_in_answers, routes_of
from tests.e2e.client.knowledge_bases import Base, new_base, searches
from tests.e2e.conftest import LARGE, SMALL
from tests.e2e.pair import ADMIN_KEY, MODEL, Pair, PairOptions, start_model, start_pair
from tests.e2e.prefixes import check_never_moves
from tests.e2e.reserve import ENGLISH, LANGUAGES, SECONDARY
from tests.e2e.turns import Body, bare_client, events_of, items_of, turn
from tests.examples import first_of
from tests.fakes.model_server import FakeModelControl, Reply
from tests.patience import PATIENCE_SECONDS
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch
from tests.servers.valkey import ValkeyServer

HONEST = LANGUAGES["english"]
SAID = "All of it hangs on one person: heliotrope."
MARKS = ("heliotrope", "absence could stop everything")
"""What the main model has said, and the secondary one."""

RULES = "reserve-rules.md"
READABLE = {
    "/v1/responses/{response_id}",
    "/v1/responses/{response_id}/input_items",
    "/v1/responses/{response_id}/prompts",
    "/v1/conversations/{conversation_id}/items",
    "/v1/conversations/{conversation_id}/items/{item_id}",
}
"""Where a reader of the conversation finds an answer."""

AUDIT = "/v1/audit/safe_summaries"
READABLE_BY_ADMINISTRATORS = {"/v1/users/{user_id}/export"}
TURNS = {
    "/v1/responses",
    "/v1/chat/completions",
    "/v1/responses/compact",
    "/v1/responses/input_tokens",
    "/v1/responses/{response_id}/cancel",
    "/v1/conversations/{conversation_id}/items",
    "/mcp",
}
"""The POST routes that can repeat an answer or send it to a model; each is tried below."""

HOLD_NO_ANSWERS = {
    "/v1/api_keys", "/v1/api_keys/{key_id}/rotate", "/v1/conversations", "/v1/conversations/{conversation_id}",
    "/v1/embeddings", "/v1/files", "/v1/groups", "/v1/knowledge_bases", "/v1/knowledge_bases/{base_id}/search",
    "/v1/moderations",
    "/v1/vector_stores", "/v1/vector_stores/{vector_store_id}", "/v1/vector_stores/{vector_store_id}/file_batches",
    "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel",
    "/v1/vector_stores/{vector_store_id}/files", "/v1/vector_stores/{vector_store_id}/files/{file_id}",
    "/v1/vector_stores/{vector_store_id}/search",
}  # fmt: skip


@dataclass
class House:
    """A pair with a secondary model."""

    pair: Pair
    second_url: str


@pytest.fixture(scope="module", params=first_of(SMALL, LARGE))
def house(
    launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[House]:
    directory = tmp_path_factory.mktemp("withheld")
    second, url = start_model(launch_for_module, directory / "second", SECONDARY)
    second.wait_ready()
    backend = {
        "BACKEND_RESTRICTED_BUDGETS": "conversation=99,day=999,month=999",
        "BACKEND_RESTRICTED_STREAM_SECONDS": "0",
    }
    if request.param == LARGE:
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        valkey: ValkeyServer = request.getfixturevalue("valkey_server")
        backend["BACKEND_DATABASE_URL"] = postgres.url(postgres.new_database())
        backend["BACKEND_REDIS_URL"] = valkey.url
    shell = {"CHAT_SHELL_SAFE_SUMMARY_MODEL": SECONDARY, "CHAT_SHELL_SAFE_SUMMARY_BASE_URL": url}
    options = PairOptions(over_http=request.param == LARGE, backend=backend, chat_shell=shell)
    yield House(start_pair(launch_for_module, directory / "pair", options), url)


@pytest.fixture
async def main(house: House) -> AsyncIterator[FakeModelControl]:
    async with house.pair.fresh_model() as control:
        yield control


@pytest.fixture
async def second(house: House) -> AsyncIterator[FakeModelControl]:
    async with FakeModelControl(house.second_url) as control:
        await control.reset()
        summary = Reply(text=(orjson.dumps(HONEST.summary).decode(),), repeat=True)
        await control.script(summary)
        yield control


@dataclass
class Story:
    """What an analyst has been told of a base, in all ways in which turns follow each other."""

    pair: Pair
    base: Base
    analyst: str
    main: FakeModelControl
    responses: list[Body] = field(default_factory=list[Body])
    keyed: list[tuple[str, Body]] = field(default_factory=list[tuple[str, Body]])
    chat: list[Body] = field(default_factory=list[Body])
    carried: list[Body] = field(default_factory=list[Body])

    async def answers(self, *, with_search: bool = False) -> None:
        """Script a turn's answer, with a search before it if asked."""
        before = [searches(HONEST.query)] if with_search else []
        await self.main.script(*before, Reply(text=(SAID,)))

    async def ask(self, client: httpx2.AsyncClient, *, with_search: bool = False, **body: Any) -> Body:
        await self.answers(with_search=with_search)
        response = await turn(client, body.pop("input", HONEST.question), **body)
        self.responses.append(response)
        return response

    async def begin(self, client: httpx2.AsyncClient) -> None:
        """Have answers in a conversation, behind it, in forks, by the other API, in a summary and by reference."""
        await self._stream(client)
        first = self.responses[0]
        conversation = first["conversation"]["id"]
        await self.ask(client, input="And then?", conversation=conversation)
        await self.ask(client, input="Or else?", previous_response_id=first["id"])
        await self._chat(client)
        await self.answers(with_search=True)
        queued = await turn(client, HONEST.question, tools=[self.base.tool], background=True)
        await self._ended(client, queued["id"])
        await self._carry(client, self.responses[1])
        said = next(item for item in await items_of(client, conversation) if SAID in orjson.dumps(item).decode())
        named = [{"type": "item_reference", "id": said["id"]}, {"role": "user", "content": "Is that so?"}]
        await self.ask(client, input=named)

    async def _stream(self, client: httpx2.AsyncClient) -> None:
        body = {"input": HONEST.question, "tools": [self.base.tool], "stream": True}
        key = f"key-of-{self.analyst}"
        await self.answers(with_search=True)
        answer = await client.post("/v1/responses", json=body, headers={"Idempotency-Key": key})
        self.responses.append(events_of(answer.text)[-1]["response"])
        self.keyed.append((key, body))

    async def _chat(self, client: httpx2.AsyncClient) -> None:
        for with_search in (True, False):
            self.chat.append({"role": "user", "content": f"{HONEST.question} {len(self.chat)}"})
            await self.answers(with_search=with_search)
            answer = await self.complete(client)
            self.chat.append({"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]})
            found = await client.get(f"/v1/responses/{answer.headers['x-ballast-response-id']}")
            self.responses.append(found.json())

    async def complete(self, client: httpx2.AsyncClient) -> httpx2.Response:
        body = {"model": MODEL, "messages": self.chat, "tools": [self.base.tool], "store": True}
        answer = await client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        return answer

    async def _ended(self, client: httpx2.AsyncClient, response_id: str) -> None:
        followed = await client.get(f"/v1/responses/{response_id}?stream=true")
        self.responses.append(events_of(followed.text)[-1]["response"])

    async def _carry(self, client: httpx2.AsyncClient, response: Body) -> None:
        await self.main.script(Reply(text=(f"So far: {SAID}",)), when=SUMMARY_INSTRUCTION[:60])
        body = {"model": MODEL, "previous_response_id": response["id"]}
        made = await client.post("/v1/responses/compact", json=body)
        assert made.status_code == 200, made.text
        self.carried = made.json()["output"]
        await self.ask(client, input=[*self.carried, {"role": "user", "content": "And so?"}])

    async def made(self, client: httpx2.AsyncClient) -> Made:
        """Return the ids of all that was made."""
        found: list[dict[str, str]] = [{"response_id": response["id"]} for response in self.responses]
        for conversation in {response["conversation"]["id"] for response in self.responses}:
            items = await items_of(client, conversation)
            found += [{"conversation_id": conversation, "item_id": item["id"]} for item in items]
            found.append({"conversation_id": conversation, "user_id": self.analyst})
        names = ("base_id", "vector_store_id")
        base = {"name": RULES, "file_id": self.base.file_ids[RULES], "batch_id": "vsfb_none", "key_id": "key_none"}
        return [*found, {**base, **dict.fromkeys(names, self.base.id), "user_id": self.analyst, "model_id": MODEL}]


@pytest.fixture
async def story(
    house: House, main: FakeModelControl, second: FakeModelControl, request: pytest.FixtureRequest
) -> Story:
    analyst = f"analyst-{abs(hash(request.node.name))}"
    members: dict[str, Any] = {analyst: "restricted_analyst"}
    base = new_base(house.pair, "stocks", {RULES: ENGLISH}, **members)
    return Story(house.pair, base, analyst, main)


async def test_every_route_that_takes_a_body_is_tried_or_holds_no_answers(house: House) -> None:
    async with bare_client(house.pair, "ann") as client:
        routes = await routes_of(client)
    assert {route.path for route in routes if route.method == "POST"} == TURNS | HOLD_NO_ANSWERS


async def withdraw(story: Story, how: str) -> None:
    """Take away what the answers rest on."""
    base = f"/v1/knowledge_bases/{story.base.id}"
    with story.pair.http(story.pair.key("ann")) as owner:
        match how:
            case "document deleted":
                gone = owner.delete(f"{base}/documents/{RULES}")
            case "member removed":
                gone = owner.delete(f"{base}/members/{story.analyst}")
            case "base deleted":
                gone = owner.delete(base)
            case _:
                gone = owner.delete(f"/v1/vector_stores/{story.base.id}/files/{story.base.file_ids[RULES]}")
    assert gone.is_success, gone.text


def sent(requests: list[Any]) -> str:
    return "\n".join(request.body.decode() for request in requests)


@pytest.mark.parametrize("how", first_of("document deleted", "member removed", "base deleted"))
async def test_no_route_and_no_model_gets_an_answer_whose_ground_is_gone(story: Story, how: str) -> None:
    async with bare_client(story.pair, story.analyst) as analyst:
        await story.begin(analyst)
        assert all(SAID in orjson.dumps(response).decode() for response in story.responses), story.responses
        routes, made = await routes_of(analyst), await story.made(analyst)
        assert set(await find_in_answers(analyst, routes, made, MARKS)) == READABLE
        assert await told_to_administrators(story, routes, made) == (READABLE_BY_ADMINISTRATORS, True)
        await withdraw(story, how)
        assert await find_in_answers(analyst, routes, made, MARKS) == {}
        assert await told_to_administrators(story, routes, made) == (set(), how == "member removed")
        for key, body in story.keyed:
            again = await analyst.post("/v1/responses", json=body, headers={"Idempotency-Key": key})
            assert again.status_code == 200
            assert not [mark for mark in MARKS if mark in again.text]
        for response in story.responses:
            stopped = await analyst.post(f"/v1/responses/{response['id']}/cancel")
            assert not [mark for mark in MARKS if mark in stopped.text]
        await go_on(story, analyst)


async def told_to_administrators(story: Story, routes: Sequence[Route], made: Made) -> tuple[set[str], bool]:
    """Return where administrators find answers beside the audit, and whether the audit's previews tell of them."""
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with httpx2.AsyncClient(
        base_url=story.pair.backend_url, headers=headers, timeout=PATIENCE_SECONDS, verify=False
    ) as client:
        found = await find_in_answers(client, [route for route in routes if route.path != AUDIT], made, MARKS)
        listed = await client.get(f"{AUDIT}?knowledge_base_id={story.base.id}&limit=100")
    records = listed.json()["data"]
    assert records
    return set(found), any(mark in record["preview"] for record in records for mark in MARKS)


async def go_on(story: Story, analyst: httpx2.AsyncClient) -> None:
    """Go on from all that was answered, and check what models are sent then."""
    await story.main.reset()
    await story.main.script(Reply(text=("Going on.",), repeat=True))
    for response in story.responses:
        await turn(analyst, "What now?", previous_response_id=response["id"], tools=[])
    for conversation in {response["conversation"]["id"] for response in story.responses}:
        await story.main.reset()
        await story.main.script(Reply(text=("Going on.",), repeat=True))
        for number in range(2):
            await turn(analyst, f"What now {number}?", conversation=conversation, tools=[])
        requests = await story.main.requests()
        assert not [mark for mark in MARKS if mark in sent(requests)]
        check_never_moves(requests)
    assert story.carried
    await turn(analyst, [*story.carried, {"role": "user", "content": "And what of that?"}])
    requests = await story.main.requests()
    assert not [mark for mark in MARKS if mark in sent(requests)]
