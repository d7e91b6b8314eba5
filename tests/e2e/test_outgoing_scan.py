"""A main model that repeats a restricted base: none of it is stored, sent, or sent to the model again."""

from collections.abc import Iterator

import orjson
import pytest

from shared.prompts.knowledge_base import ANSWER_CUT
from tests.e2e.client.shelf import Base, new_base, searches
from tests.e2e.pair import Pair, PairOptions, start_pair
from tests.e2e.turns import Body, bare_client, events_of, items_of, text_of, turn
from tests.fakes.model_server import FakeModelControl, Reply
from tests.servers.ports import free_port
from tests.servers.services import Launch

ENGLISH = "The Quillmark escalation begins with the duty engineer and ends with the keeper of the northern vault."
CHINESE = "值班工程师先通知青岚金库的保管员，再由保管员在名册上签字确认。"
FIGURE = "The reserve holds 48,200 litres."
BENIGN = "Escalation looks slow to me, so name one person who decides at night and tell everybody who that is. "
TELL_TALES = ("duty engineer", "Quillmark", "northern vault", "青岚", "保管员", "48,200", "48200")
SECONDARY = "second-model"
REFUSAL = {"decision": "refuse", "reason": "out_of_scope", "summary": "", "confidence": "low"} | {
    name: list[str]() for name in ("observations", "risks", "recommended_actions")
}


@pytest.fixture(scope="module")
def served(launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pair, str]]:
    """A pair with a secondary model, and that one's address."""
    directory = tmp_path_factory.mktemp("scanned")
    url = f"http://127.0.0.1:{(port := free_port())}/v1"
    second = launch_for_module(
        "tests.fakes.model_server", "--port", str(port), "--model", SECONDARY,
        settings={}, directory=directory / "second", ready_url=f"{url}/models",
    )  # fmt: skip
    second.wait_ready()
    settings = {"CHAT_SHELL_SAFE_SUMMARY_MODEL": SECONDARY, "CHAT_SHELL_SAFE_SUMMARY_BASE_URL": url}
    yield start_pair(launch_for_module, directory / "pair", PairOptions(chat_shell=settings)), url


def ladder(pair: Pair, analyst: str) -> Base:
    return new_base(
        pair, "ladder", {"ladder.md": f"{ENGLISH}\n\n{FIGURE}", "流程.md": CHINESE}, **{analyst: "restricted_analyst"}
    )


def split(text: str, size: int) -> tuple[str, ...]:
    return tuple(text[start : start + size] for start in range(0, len(text), size))


def tell_tales(*seen: object) -> list[str]:
    everything = "".join(orjson.dumps(one).decode() if not isinstance(one, str) else one for one in seen)
    return [word for word in TELL_TALES if word in everything]


async def everything_kept(pair: Pair, analyst: str, response_id: str) -> list[Body]:
    """Read a response in every way there is."""
    async with bare_client(pair, analyst) as client:
        stored = (await client.get(f"/v1/responses/{response_id}?include=file_search_call.results")).json()
        replayed = events_of((await client.get(f"/v1/responses/{response_id}?stream=true")).text)
        prompts = (await client.get(f"/v1/responses/{response_id}/prompts")).json()
        return [stored, *replayed, prompts, *await items_of(client, stored["conversation"]["id"])]


def check_cut(response: Body) -> None:
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "content_filter"})
    assert text_of(response).endswith(ANSWER_CUT)


@pytest.mark.parametrize("size", [1, 10_000], ids=["characters", "whole"])
@pytest.mark.parametrize("secret", [ENGLISH, CHINESE], ids=["english", "chinese"])
async def test_a_passage_is_neither_sent_nor_stored(
    pair: Pair, model: FakeModelControl, secret: str, size: int
) -> None:
    analyst = f"scanned-{size}-{len(secret)}"
    base = ladder(pair, analyst)
    said = Reply(text=split(BENIGN * 2 + secret + BENIGN, size))
    await model.script(said, said, said, Reply(text=("Sure.",)))
    async with bare_client(pair, analyst) as client:
        plain = await turn(client, "How do we do?", tools=[base.tool])
        streamed = await client.post(
            "/v1/responses", json={"input": "How do we do?", "tools": [base.tool], "stream": True}
        )
        begun = await turn(client, "How do we do?", tools=[base.tool], background=True)
        followed = events_of((await client.get(f"/v1/responses/{begun['id']}?stream=true")).text)
        ends = [plain, events_of(streamed.text)[-1]["response"], followed[-1]["response"]]
        for ended in ends:
            check_cut(ended)
            assert tell_tales(ended, streamed.text, *followed) == []
            assert tell_tales(*await everything_kept(pair, analyst, ended["id"])) == []
        again = await turn(client, "Go on.", previous_response_id=plain["id"])
    assert text_of(again) == "Sure."
    assert tell_tales((await model.requests())[-1].body.decode(), pair.backend.log()) == []
    assert ANSWER_CUT in (await model.requests())[-1].body.decode()
    assert "Answer cut" in pair.backend.log()


async def test_a_served_figure_is_neither_sent_nor_stored(served: tuple[Pair, str]) -> None:
    pair, url = served
    base = ladder(pair, "ana")
    async with pair.control() as main, FakeModelControl(url) as second:
        await main.script(searches("what the reserve holds"), Reply(text=split("About 48,200 litres, I guess.", 1)))
        await second.script(Reply(text=(orjson.dumps(REFUSAL).decode(),)))
        async with bare_client(pair, "ana") as client:
            response = await turn(client, "Is our reserve in good shape?", tools=[base.tool])
        assert len(await second.requests()) == 1
    check_cut(response)
    assert tell_tales(response, *await everything_kept(pair, "ana", response["id"]), pair.backend.log()) == []


async def test_who_may_read_gets_the_passage(pair: Pair, model: FakeModelControl) -> None:
    base = ladder(pair, "scanned-nobody")
    await model.script(Reply(text=(ENGLISH,)))
    async with bare_client(pair, "ann") as client:
        assert text_of(await turn(client, "How do we do?", tools=[base.tool])) == ENGLISH
