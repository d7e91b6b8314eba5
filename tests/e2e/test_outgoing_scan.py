"""A main model that repeats a restricted base: none of it is stored, sent, or sent to the model again."""

import re
from collections.abc import Iterator

import orjson
import pytest

from shared.prompts.knowledge_base import ANSWER_CUT, CHINESE_FIGURE_WITHHELD, FIGURE_WITHHELD
from tests.e2e.client.knowledge_bases import Base, new_base, searches
from tests.e2e.pair import Pair, PairOptions, start_model, start_pair
from tests.e2e.turns import Body, bare_client, events_of, items_of, streamed_turn, text_of, turn
from tests.fakes.model_server import FakeModelControl, Reply
from tests.servers.services import Launch

ENGLISH = "The Quillmark escalation begins with the duty engineer and ends with the keeper of the northern vault."
CHINESE = "值班工程师先通知青岚金库的保管员，再由保管员在名册上签字确认。"
FIGURE = "The reserve holds 48,200 litres."
BENIGN = "Escalation looks slow to me, so name one person who decides at night and tell everybody who that is. "
TELL_TALES = re.compile(r"duty engineer|Quillmark|northern vault|青岚|保管员|48,200|(?<![\w.])48200(?!\w)")
"""The bare figure stands by itself: ids and times are spelt with the same digits."""

DELTA = "response.output_text.delta"
SECONDARY = "second-model"
REFUSAL = {"decision": "refuse", "reason": "out_of_scope", "summary": "", "confidence": "low"} | {
    name: list[str]() for name in ("observations", "risks", "recommended_actions")
}


@pytest.fixture(scope="module")
def served(launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pair, str]]:
    """A pair with a secondary model, and that one's address."""
    directory = tmp_path_factory.mktemp("scanned")
    second, url = start_model(launch_for_module, directory / "second", SECONDARY)
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
    return TELL_TALES.findall(everything)


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


LARGEST = 5_000
TELLING = (
    "The Quillmark reserve behind the northern vault holds {} litres at any time, refilled every {} days. "
    "{} of its valves stand open. 青岚库的保管员每隔{}天清点一次库存，然后把{}升运往别处。"
)
FIGURES_OF_ONE = ("4,711", "three", "eleven", "九", "三百五十")
FIGURES_OF_OTHER = ("3,820", "12", "seven", "四十", "两千")


def guesses(figures: tuple[str, ...]) -> str:
    """Say what somebody says who looks for figures by trying: count, compare, list, and ask for each of them."""
    counted = ", ".join(map(str, range(1, LARGEST + 1)))
    compared = " ".join(
        f"It is more than {number:,} litres and less than {number + 3} days." for number in range(1, 400)
    )
    listed = "\n".join(f"{number}. {number} %, {number}升" for number in range(1, 400))
    asked = " ".join(f"Is it {figure} litres, {figure}升, or {figure}?" for figure in figures)
    return f"{asked}\n{counted}\n{compared}\n{listed}\n{asked}"


async def test_no_figure_can_be_found_by_trying(served: tuple[Pair, str]) -> None:
    pair, url = served
    streamed = list[list[str]]()
    said = guesses((*FIGURES_OF_ONE, *FIGURES_OF_OTHER))
    known = TELLING.format(*FIGURES_OF_ONE)
    for number, figures in enumerate((FIGURES_OF_ONE, FIGURES_OF_OTHER)):
        analyst = f"guesser-{number}"
        base = new_base(pair, "reserve", {"r.md": TELLING.format(*figures)}, **{analyst: "restricted_analyst"})
        async with pair.control() as main, FakeModelControl(url) as second, bare_client(pair, analyst) as client:
            if number:
                await second.script(Reply(text=(orjson.dumps(REFUSAL).decode(),)))
                await main.script(searches("what the reserve holds"), Reply(text=("Nothing.",)))
                await turn(client, "Is our reserve in good shape?", tools=[base.tool])
                assert any(figures[0] in request.body.decode() for request in await second.requests())
            sizes = (1_000 - 223 * number, 7 + number)
            await main.script(Reply(text=split(said, sizes[0])), Reply(text=split(f"{BENIGN}{known}", sizes[1])))
            texts = list[str]()
            for _ in range(2):
                events = await streamed_turn(client, "How do we do?", tools=[base.tool])
                texts.append("".join(event["delta"] for event in events if event["type"] == DELTA))
                assert texts[-1] == text_of(events[-1]["response"])
            streamed.append(texts)
    assert streamed[0] == streamed[1]
    counted, cut = streamed[0]
    assert counted.endswith(said[-1]) and ANSWER_CUT not in counted
    assert not [word for word in ("4,711", "4711", "3820", "5000", "350", "九天") if word in counted]
    assert counted.startswith(f"Is it {FIGURE_WITHHELD}, {CHINESE_FIGURE_WITHHELD}, or {FIGURE_WITHHELD}?")
    assert cut == f"{BENIGN}\n\n{ANSWER_CUT}"
    assert pair.backend.log().count("Answer cut") == 2


async def test_who_may_read_gets_the_passage(pair: Pair, model: FakeModelControl) -> None:
    base = ladder(pair, "scanned-nobody")
    await model.script(Reply(text=(ENGLISH,)))
    async with bare_client(pair, "ann") as client:
        assert text_of(await turn(client, "How do we do?", tools=[base.tool])) == ENGLISH
