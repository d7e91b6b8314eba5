"""What a restricted turn lets out when its main model repeats the base."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from backend.conversations.domain.responses import StoredResponse
from backend.knowledge.domain.knowledge import MemberRole
from backend.restricted.domain.canaries import document_canary
from backend.restricted.domain.outgoing_events import CutCause
from shared.errors import Unavailable
from shared.models.events import (
    CitationAdded,
    ExecutionEvent,
    FinishReason,
    FunctionCallRequested,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ReasoningDelta,
    RefusalDelta,
    SearchFinished,
    SearchResult,
    SearchStarted,
    TextDelta,
    TurnFinished,
)
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage
from shared.models.values import objects_in
from shared.prompts.knowledge_base import ANSWER_CUT
from tests.contract.knowledge_cases import make_base, put
from tests.fakes.chat_shell_scripted import USAGE, Step, answer
from tests.fakes.json_paths import at
from tests.fakes.openai_house import ADA, SECRET, TurnHouse, open_house
from tests.fakes.openai_types import check_item, check_response

PASSAGE = "The escalation ladder begins with the duty engineer and ends with the vault keeper of the northern site."
CHINESE = "值班工程师先通知北区金库的保管员，再由保管员在名册上签字确认。"
BENIGN = "Escalation seems slow here, so it would help to name one person who decides at night and by when. "
TOOLS = [{"type": "file_search", "vector_store_ids": ["kb_a"]}]


@asynccontextmanager
async def restricted_house(*scripts: Sequence[Step]) -> AsyncGenerator[TurnHouse]:
    async with open_house(*scripts) as house:
        await house.knowledge.create_base(make_base("kb_a", tenant="default"), "bob")
        await house.knowledge.set_member("kb_a", "ada", MemberRole.RESTRICTED_ANALYST)
        await put(house.knowledge, "ladder.md", [PASSAGE, CHINESE])
        yield house


def split(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


async def sinks(house: TurnHouse, response: StoredResponse) -> str:
    """Return all that is stored of a response and all that was sent, as one text."""
    log = [entry.message.model_dump() for entry in house.log_of(response.conversation_id) if entry.message]
    items = [item.body for item in house.state.items[response.conversation_id]]
    events = await house.all_events(response)
    return orjson.dumps([response.body, log, items, events]).decode()


def said(response: StoredResponse) -> str:
    return "".join(
        str(part.get("text") or part.get("refusal") or "")
        for item in objects_in(response.body["output"])
        if item["type"] == "message"
        for part in objects_in(item["content"])
    )


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("secret", [PASSAGE, CHINESE])
async def test_a_passage_ends_the_answer_before_any_of_it_goes(secret: str, size: int) -> None:
    async with restricted_house(answer(*split(BENIGN + secret + BENIGN, size))) as house:
        response = await house.ask(tools=TOOLS)
        assert (response.status, response.body["incomplete_details"]) == ("incomplete", {"reason": "content_filter"})
        assert said(response).endswith(ANSWER_CUT)
        assert BENIGN.startswith(said(response).removesuffix(ANSWER_CUT).rstrip())
        everything = await sinks(house, response)
        assert "duty engineer" not in everything
        assert "值班" not in everything
        assert house.observer.cuts == [(response.id, CutCause.PASSAGE)]
        check_response(response.body, open_responses=False)
        for item in house.state.items[response.conversation_id]:
            check_item(item.body)
        assert house.log_of(response.conversation_id)[-1].message == AssistantMessage(text=said(response))


async def test_chat_shell_is_stopped() -> None:
    never = asyncio.Event()
    script: list[Step] = [*answer(PASSAGE)[:2], *(TextDelta(text=word) for word in BENIGN.split(" ")), never]
    async with restricted_house(script) as house:
        response = await house.ask(tools=TOOLS)
        assert (response.status, said(response)) == ("incomplete", ANSWER_CUT)
        assert house.scripted.broken_off == 1


async def test_a_benign_answer_goes_whole() -> None:
    async with restricted_house(answer(*split(BENIGN * 5, 3))) as house:
        response = await house.ask(tools=TOOLS)
        assert (response.status, said(response)) == ("completed", BENIGN * 5)
        assert house.log_of(response.conversation_id)[-1].message == AssistantMessage(text=BENIGN * 5)
        assert not house.observer.cuts


async def test_the_users_own_words_may_be_repeated() -> None:
    async with restricted_house(answer(f"You say: {PASSAGE}")) as house:
        response = await house.ask(tools=TOOLS, input=f"Is this right? {PASSAGE}")
        assert response.status == "completed"


@pytest.mark.parametrize("numeral", ["一", "9", "nine "])
async def test_a_message_of_numerals_alone_is_answered(numeral: str) -> None:
    async with restricted_house(answer(BENIGN)) as house:
        assert (await house.ask(tools=TOOLS, input=numeral * 5_000)).status == "completed"


async def test_who_may_read_the_base_gets_its_words() -> None:
    async with restricted_house(answer(PASSAGE)) as house:
        await house.knowledge.set_member("kb_a", "ada", MemberRole.READER)
        assert said(await house.ask(tools=TOOLS)) == PASSAGE


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("It takes 47 minutes.", CutCause.FIGURE),
        ("大约需要四十七分钟。", CutCause.FIGURE),
        ("Of 1,873 cases few are late.", CutCause.FIGURE),
        ("One thousand eight hundred and seventy-three tons.", CutCause.FIGURE),
        ("The price is 418.5k.", CutCause.FIGURE),
        ("约四十一万八千五百", CutCause.FIGURE),
        ("It takes 47 steps.", None),
        ("You named 2,750.", None),
        ("It takes 48 minutes, as in 2021.", None),
        ("It takes 30 days.", None),
        (f"See {document_canary(SECRET, 'doc_9').upper()}.", CutCause.CANARY),
        ("See " + " ".join(document_canary(SECRET, "doc_9")), CutCause.CANARY),
    ],
)
async def test_figures_that_were_served_and_canaries_end_the_answer(text: str, cause: CutCause | None) -> None:
    async with restricted_house(answer(*split(text, 1))) as house:
        house.served.texts = ["In 2021 it took 47 minutes in 1,873 cases, and 30 days at worst. 418,500 EUR, 2,750 kg."]
        response = await house.ask(tools=TOOLS, input="Is it more than 30 days? Or 2,750 kg?")
        assert [found for _, found in house.observer.cuts] == ([cause] if cause else [])
        assert (response.status == "incomplete") is bool(cause)


async def test_a_cut_is_counted_as_a_refusal() -> None:
    async with restricted_house(answer("It takes 47 minutes.")) as house:
        house.served.texts = ["It took 47 minutes."]
        await house.ask(tools=TOOLS)
        assert house.served.cuts == [(ADA.user_id, ("kb_a",))]


@pytest.mark.parametrize("text", ["It takes 48 minutes.", "It takes 47 minutes."])
async def test_while_a_user_is_paused_a_cut_tells_nothing_of_what_was_served(text: str) -> None:
    async with restricted_house(answer(text), answer("It was so in 2021.")) as house:
        house.served.texts = ["It took 47 minutes."]
        house.served.paused = {ADA.user_id}
        assert (await house.ask(tools=TOOLS)).status == "incomplete"
        assert (await house.ask(tools=TOOLS)).status == "completed"


async def test_a_figure_is_judged_by_what_was_served_until_then() -> None:
    search = ToolCall(call_id="k1", name="knowledge_base_search", arguments='{"query":"delays"}')
    arrived = asyncio.Event()
    script: list[Step] = [
        ModelCallStarted(call=1),
        TextDelta(text="It was 47 minutes, I guess."),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        SearchStarted(call_id="k1", queries=("delays",)),
        arrived,
        SearchFinished(call_id="k1", failed=False, results=()),
        MessagesAdded(
            messages=(
                AssistantMessage(text="It was 47 minutes, I guess.", tool_calls=(search,)),
                ToolMessage(call_id="k1", content="{}"),
            )
        ),
        ModelCallStarted(call=2),
        TextDelta(text="Indeed 47 minutes."),
    ]
    async with restricted_house(script) as house:
        running = await house.start(tools=TOOLS)
        await house.served.asked.wait()
        house.served.texts = ["47 minutes"]
        arrived.set()
        response = await running.ended()
        assert said(response) == f"It was 47 minutes, I guess.{ANSWER_CUT}"
        assert house.log_of(response.conversation_id)[-1].message == AssistantMessage(text=ANSWER_CUT)


async def test_a_later_call_knows_what_was_served_since_the_one_before() -> None:
    search = ToolCall(call_id="k1", name="knowledge_base_search", arguments='{"query":"delays"}')
    arrived = asyncio.Event()
    guess = "It was 33 minutes, I guess."
    script: list[Step] = [
        ModelCallStarted(call=1),
        TextDelta(text=guess),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        SearchStarted(call_id="k1", queries=("delays",)),
        arrived,
        MessagesAdded(
            messages=(AssistantMessage(text=guess, tool_calls=(search,)), ToolMessage(call_id="k1", content="{}"))
        ),
        ModelCallStarted(call=2),
        *answer("Indeed 47 minutes.")[1:],
    ]
    async with restricted_house(script) as house:
        house.served.texts = ["12 hours"]
        running = await house.start(tools=TOOLS)
        await house.served.asked.wait()
        house.served.texts = ["12 hours", "47 minutes"]
        arrived.set()
        assert said(await running.ended()) == f"{guess}{ANSWER_CUT}"


@pytest.mark.parametrize(("text", "status"), [("All is calm.", "completed"), ("It takes 47 minutes.", "failed")])
async def test_a_database_that_is_away_matters_where_a_figure_is_said(text: str, status: str) -> None:
    async with restricted_house(answer(text)) as house:
        house.served.is_away = True
        assert (await house.ask(tools=TOOLS)).status == status


async def test_what_could_not_be_noted_is_noted_when_it_matters() -> None:
    arrived = asyncio.Event()
    script: list[Step] = [ModelCallStarted(call=1), arrived, *answer("It takes 47 minutes.")[1:]]
    async with restricted_house(script) as house:
        house.served.texts, house.served.is_away = ["47 minutes"], True
        running = await house.start(tools=TOOLS)
        await house.served.asked.wait()
        house.served.is_away = False
        arrived.set()
        assert said(await running.ended()) == ANSWER_CUT


async def test_the_words_of_a_search_are_not_judged_by_what_it_brings() -> None:
    search = ToolCall(call_id="k1", name="knowledge_base_search", arguments='{"query":"over 47 minutes"}')
    arrived = asyncio.Event()
    script: list[Step] = [
        ModelCallStarted(call=1),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        arrived,
        SearchStarted(call_id="k1", queries=("over 47 minutes",)),
        SearchFinished(call_id="k1", failed=False, results=()),
        MessagesAdded(
            messages=(AssistantMessage(text="", tool_calls=(search,)), ToolMessage(call_id="k1", content="{}"))
        ),
        ModelCallStarted(call=2),
        *answer("Well.")[1:],
    ]
    async with restricted_house(script, answer("So 47 minutes.")) as house:
        running = await house.start(tools=TOOLS)
        await house.served.asked.wait()
        house.served.texts = ["47 minutes"]
        arrived.set()
        assert said(await running.ended()) == "Well."
        assert said(await house.ask(tools=TOOLS)) == ANSWER_CUT


def calls_function(arguments: str) -> list[ExecutionEvent]:
    call = ToolCall(call_id="c1", name="weather", arguments=arguments)
    return [
        ModelCallStarted(call=1),
        TextDelta(text="Let me see."),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        FunctionCallRequested(call_id=call.call_id, name=call.name, arguments=call.arguments),
        MessagesAdded(messages=(AssistantMessage(text="Let me see.", tool_calls=(call,)),)),
        TurnFinished(finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
    ]


@pytest.mark.parametrize(
    "events",
    [
        calls_function(orjson.dumps({"city": {"name": [PASSAGE]}}).decode()),
        calls_function('{"city": "' + "".join(f"\\u{ord(character):04x}" for character in CHINESE) + '"}'),
        calls_function(PASSAGE),
        [ModelCallStarted(call=1), ReasoningDelta(text=PASSAGE), *answer("Well.")[1:]],
        [ModelCallStarted(call=1), RefusalDelta(text=PASSAGE), *answer("")[2:]],
        [ModelCallStarted(call=1), SearchStarted(call_id="k", queries=("x", PASSAGE)), *answer("Well.")[1:]],
        [*answer("Well.")[:3], MessagesAdded(messages=(AssistantMessage(text=PASSAGE),)), answer("")[-1]],
        [
            ModelCallStarted(call=1),
            *(delta for character in PASSAGE for delta in (TextDelta(text=character), ReasoningDelta(text="well "))),
        ],
    ],
)
async def test_nothing_else_that_a_turn_says_holds_it(events: list[Step]) -> None:
    async with restricted_house(events) as house:
        response = await house.ask(tools=TOOLS)
        assert response.body["incomplete_details"] == {"reason": "content_filter"}
        everything = await sinks(house, response)
        assert "vault keeper" not in everything
        assert "保管员" not in everything
        assert said(response).endswith(ANSWER_CUT)
        assert house.observer.cuts == [(response.id, CutCause.PASSAGE)]


async def test_the_next_turn_begins_with_what_went() -> None:
    async with restricted_house(answer(BENIGN * 2 + PASSAGE), answer("Sure.")) as house:
        first = await house.ask(tools=TOOLS)
        second = await house.ask(previous_response_id=first.id)
        assert second.status == "completed"
        sent = house.sent[-1].model_dump_json()
        assert "duty engineer" not in sent
        assert ANSWER_CUT in sent


async def test_citations_keep_their_place_and_none_is_of_a_restricted_base() -> None:
    text = "One two three [1] four five six [2] and so on, as far as the held back words go and then further still."

    def cited(number: int, document_id: str) -> CitationAdded:
        return CitationAdded(number=number, file_id=document_id, filename="a.md", index=text.index(f"[{number}]"))

    script: list[Any] = [ModelCallStarted(call=1)]
    for character in text:
        script.append(TextDelta(text=character))
        if character == "]":
            script.append(cited(1, "doc_kb_b_open.md") if len(script) < 25 else cited(2, "doc_kb_a_ladder.md"))
    async with restricted_house([*script, *answer(text)[2:]]) as house:
        await house.knowledge.create_base(make_base("kb_b", tenant="default"), "ada")
        await put(house.knowledge, "open.md", ["Open to all."], base_id="kb_b")
        both = [{"type": "file_search", "vector_store_ids": ["kb_a", "kb_b"]}]
        response = await house.ask(tools=both)
        (part,) = at(response.body, "output", 0, "content")
        assert part["text"] == text
        assert [(one["file_id"], one["index"]) for one in part["annotations"]] == [("doc_kb_b_open.md", 14)]
        events = await house.all_events(response)
        place = next(at for at, event in enumerate(events) if event["type"].endswith("annotation.added"))
        before = "".join(event.get("delta", "") for event in events[:place])
        assert before == text[: text.index("]") + 1]


async def test_results_never_show() -> None:
    hit = SearchResult(number=1, file_id="doc_1", filename="ladder.md", score=0.5, text=PASSAGE)
    script: list[Step] = [
        ModelCallStarted(call=1),
        SearchStarted(call_id="k", queries=("x",)),
        SearchFinished(call_id="k", failed=False, results=(hit,)),
        *answer("Well.")[1:],
    ]
    async with restricted_house(script) as house:
        everything = await sinks(house, await house.ask(tools=TOOLS, include=["file_search_call.results"]))
        assert "ladder.md" not in everything
        assert "vault" not in everything


async def test_a_turn_that_is_stopped_keeps_what_it_has_said_if_that_may_go() -> None:
    for text in ("It may be so.", PASSAGE):
        never = asyncio.Event()
        async with restricted_house([ModelCallStarted(call=1), TextDelta(text=text), never]) as house:
            running = await house.start(tools=TOOLS)
            await house.signals.send(running.response.id)
            response = await running.ended()
            assert said(response) in (text if text != PASSAGE else ANSWER_CUT, "")
            assert "vault" not in await sinks(house, response)


async def test_what_cannot_be_looked_up_does_not_go() -> None:
    async with restricted_house(answer(BENIGN * 3)) as house:

        async def away(*_: object) -> bool:
            raise Unavailable("The database is away.")

        house.knowledge.holds_run = away  # type: ignore[method-assign]
        response = await house.ask(tools=TOOLS)
        assert (response.status, said(response)) == ("failed", "")
