"""What a restricted turn lets out when its main model repeats the base."""

import asyncio
from base64 import b64encode
from typing import Any

import orjson
import pytest

from backend.conversations.domain.conversation_log import MAX_USER_CHARACTERS
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
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from shared.models.values import objects_in
from shared.prompts.knowledge_base import ANSWER_CUT, FIGURE_WITHHELD
from tests.contract.knowledge_cases import make_base, put
from tests.fakes.chat_shell_scripted import USAGE, ScriptedChatShell, Step, answer
from tests.fakes.json_paths import at
from tests.fakes.openai_house import ADA, SECRET, TurnHouse
from tests.fakes.openai_types import check_item, check_response
from tests.patience import PATIENCE_SECONDS, eventually
from tests.unit.backend.restricted.restricted_house import BENIGN, CHINESE, PASSAGE, TOOLS, restricted_house


async def test_a_turn_that_runs_again_elsewhere_sends_the_users_own_words_again() -> None:
    awake = asyncio.Event()
    async with restricted_house([awake, *answer("Mine.")]) as frozen:
        running = await frozen.start(input="Who keeps the vault?", tools=TOOLS)
        await eventually(lambda: len(frozen.sent), bool)
        survivor = TurnHouse(
            chat_shell=ScriptedChatShell(answer("Nobody says.")),
            state=frozen.state,
            knowledge=frozen.knowledge,
            replica="b",
        )
        async with asyncio.timeout(PATIENCE_SECONDS), survivor.registry:
            await survivor.recovery.at_start()
            awake.set()
            await running.wait_until_ended()
        assert survivor.sent[0].knowledge.user_words == frozen.sent[0].knowledge.user_words != ""


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
    "canary",
    [
        document_canary(SECRET, "doc_9").upper(),
        " ".join(document_canary(SECRET, "doc_9")),
        "4".join(document_canary(SECRET, "doc_9")),
    ],
)
@pytest.mark.parametrize("size", [1, 10_000])
async def test_a_canary_ends_the_answer(canary: str, size: int) -> None:
    async with restricted_house(answer(*split(f"See {canary}.", size))) as house:
        response = await house.ask(tools=TOOLS)
        assert response.status == "incomplete"
        assert house.observer.cuts == [(response.id, CutCause.CANARY)]


GUESSES = "It takes 47 minutes in 1,873 cases, not 48 minutes in 1,874 cases."


@pytest.mark.parametrize("size", [1, 4, 10_000])
async def test_figures_are_withheld_whatever_the_base_holds(size: int) -> None:
    streamed = set[str]()
    for told in ("It took 47 minutes in 1,873 cases, and nobody knew of it.", "Nobody counts, and nobody knew of it."):
        async with restricted_house(answer(*split(GUESSES, size))) as house:
            await put(house.knowledge, "figures.md", [told])
            response = await house.ask(tools=TOOLS)
            mark = FIGURE_WITHHELD
            assert (response.status, said(response)) == (
                "completed",
                f"It takes {mark} in {mark} cases, not {mark} in {mark} cases.",
            )
            everything = await sinks(house, response)
            assert not [figure for figure in ("47 minutes", "1,873", "48 minutes", "1,874") if figure in everything]
            assert (house.observer.cuts, house.cuts.counted) == ([], [])
            events = await house.all_events(response)
            streamed.add("".join(event["delta"] for event in events if event["type"].endswith("text.delta")))
    assert len(streamed) == 1


@pytest.mark.parametrize("guess", ["47 minutes", "five days", "1,000 seconds"])
async def test_the_words_around_a_figure_do_not_tell_it(guess: str) -> None:
    around = "the keeper of the sluice waits {} before he lowers the gate"
    async with restricted_house(answer(f"I guess {around.format(guess)}.")) as house:
        await put(house.knowledge, "figures.md", [around.format("47 minutes")])
        response = await house.ask(tools=TOOLS)
        assert said(response) == f"I guess\n\n{ANSWER_CUT}".replace("guess\n", "guess \n")


async def test_what_the_user_wrote_in_this_conversation_stays() -> None:
    script = answer("Not 2750 kilograms but 2,750 kg; not thirty-one days but 30 days, on 2026-11-22.")
    async with restricted_house(answer("Sure."), script) as house:
        first = await house.ask(tools=TOOLS, input="Is it 2,750 kg?")
        response = await house.ask(input="Or within 30 days?", previous_response_id=first.id)
        mark = FIGURE_WITHHELD
        assert said(response) == f"Not 2750 kilograms but 2,750 kg; not {mark} but 30 days, on {mark}."


async def test_what_the_application_adds_is_no_word_of_the_user() -> None:
    async with restricted_house(answer("Sure."), answer("It is 4,711 or 2,750 kg.")) as house:
        readable = make_base("kb_b", tenant="default").model_copy(update={"name": "Shelf 4,711"})
        await house.knowledge.create_base(readable, "bob")
        await house.knowledge.set_member("kb_b", "ada", MemberRole.READER)
        both = [{"type": "file_search", "vector_store_ids": ["kb_a", "kb_b"]}]
        first = await house.ask(tools=both, input="Is it 2,750 kg?")
        response = await house.ask(input="Or what?", previous_response_id=first.id)
        sent = house.sent[-1]
        assert "4,711" in str([message.content for message in sent.history if isinstance(message, UserMessage)])
        assert sent.knowledge.user_words == "Is it 2,750 kg?\nOr what?"
        assert said(response) == f"It is {FIGURE_WITHHELD} or 2,750 kg."


@pytest.mark.parametrize("order", [1, -1], ids=["before the question", "behind the question"])
async def test_what_an_attached_file_says_is_no_word_of_the_user(order: int) -> None:
    """A file may hold a dictionary, or what somebody else read in the base; a long one leaves the question in place."""
    text = b64encode(b"Shelf 4,711 holds much. " * 2_000).decode()
    file = {"type": "input_file", "filename": "a.txt", "file_data": f"data:text/plain;base64,{text}"}
    asked = {"type": "input_text", "text": "Is it 2,750 kg?"}
    async with restricted_house(answer("It is 4,711 or 2,750 kg.")) as house:
        response = await house.ask(tools=TOOLS, input=[{"role": "user", "content": [file, asked][::order]}])
        assert "Shelf 4,711" in str(house.sent[0].history)
        assert house.sent[0].knowledge.user_words == "Is it 2,750 kg?"
        assert said(response) == f"It is {FIGURE_WITHHELD} or 2,750 kg."


async def test_what_the_user_wrote_before_a_compaction_is_still_their_own() -> None:
    script = answer("It is 2,750 kg, not 2,751 kg.")
    async with restricted_house(answer("word " * 100_000), script) as house:
        first = await house.ask(input="Is it 2,750 kg?")
        response = await house.ask(tools=TOOLS, input="Or what?", previous_response_id=first.id)
        sent = house.sent[-1]
        assert "2,750" not in str(sent.history)
        assert sent.knowledge.user_words == "Is it 2,750 kg?\nOr what?"
        assert said(response) == f"It is 2,750 kg, not {FIGURE_WITHHELD}."


async def test_a_turn_that_is_not_restricted_does_without_the_users_words() -> None:
    async with restricted_house(answer("Sure."), answer("Sure.")) as house:
        first = await house.ask(input="Is it 2,750 kg?")
        await house.knowledge.set_member("kb_a", "ada", MemberRole.READER)
        await house.ask(tools=TOOLS, previous_response_id=first.id)
        assert [request.knowledge.user_words for request in house.sent] == ["", ""]


async def test_only_the_newest_of_the_users_words_count() -> None:
    async with restricted_house(answer("Sure."), answer("It is 2,750 kg or 3,160 kg.")) as house:
        first = await house.ask(tools=TOOLS, input="Is it 2,750 kg?")
        newest = ("ask " * MAX_USER_CHARACTERS)[: MAX_USER_CHARACTERS - 10] + " 3,160 kg?"
        response = await house.ask(input=newest, previous_response_id=first.id)
        assert house.sent[-1].knowledge.user_words == newest
        assert said(response) == f"It is {FIGURE_WITHHELD} or 3,160 kg."


async def test_a_cut_is_counted_as_a_refusal() -> None:
    async with restricted_house(answer(PASSAGE)) as house:
        await house.ask(tools=TOOLS)
        assert house.cuts.counted == [(ADA.user_id, ("kb_a",))]


async def test_all_that_a_turn_says_is_without_figures() -> None:
    arguments = '{"query":"over 47 minutes","limit":250,"least":3,"more":["4\\u0037 h",{"48 %":null}]}'
    shown = (
        f'{{"query":"over {FIGURE_WITHHELD}","limit":"{FIGURE_WITHHELD}","least":3,'
        f'"more":["{FIGURE_WITHHELD}",{{"{FIGURE_WITHHELD}":null}}]}}'
    )
    guess = "I guess 47 minutes."
    search = ToolCall(call_id="k1", name="knowledge_base_search", arguments=arguments)
    script: list[Step] = [
        ModelCallStarted(call=1),
        ReasoningDelta(text="Perhaps 47 minutes?"),
        TextDelta(text=guess),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        SearchStarted(call_id="k1", queries=("over 47 minutes",)),
        SearchFinished(call_id="k1", failed=False, results=()),
        MessagesAdded(
            messages=(AssistantMessage(text=guess, tool_calls=(search,)), ToolMessage(call_id="k1", content="{}"))
        ),
        ModelCallStarted(call=2),
        *answer("Indeed 47 minutes.")[1:],
    ]
    async with restricted_house(script) as house:
        response = await house.ask(tools=TOOLS)
        assert said(response) == f"I guess {FIGURE_WITHHELD}.Indeed {FIGURE_WITHHELD}."
        logged = [entry.message for entry in house.log_of(response.conversation_id)]
        shown_call = search.model_copy(update={"arguments": shown})
        assert AssistantMessage(text=f"I guess {FIGURE_WITHHELD}.", tool_calls=(shown_call,)) in logged
        everything = await sinks(house, response)
        assert not [figure for figure in ("47 min", "7 h", "48 %", "250,") if figure in everything]


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
    text = "Within 47 minutes [1] or 1,250 hours [2] [13] and so on, as far as the held back words go and then further."

    def cited(number: int, document_id: str) -> CitationAdded:
        return CitationAdded(number=number, file_id=document_id, filename="a.md", index=text.index(f"[{number}]"))

    citations = iter((cited(1, "doc_kb_b_open.md"), cited(2, "doc_kb_a_ladder.md"), cited(13, "doc_kb_b_open.md")))
    script: list[Any] = [ModelCallStarted(call=1)]
    for character in text:
        script += [TextDelta(text=character), *([next(citations)] if character == "]" else [])]
    async with restricted_house([*script, *answer(text)[2:]]) as house:
        await house.knowledge.create_base(make_base("kb_b", tenant="default"), "ada")
        await put(house.knowledge, "open.md", ["Open to all."], base_id="kb_b")
        both = [{"type": "file_search", "vector_store_ids": ["kb_a", "kb_b"]}]
        response = await house.ask(tools=both)
        (part,) = at(response.body, "output", 0, "content")
        shown = text.replace("47 minutes", FIGURE_WITHHELD).replace("1,250 hours", FIGURE_WITHHELD)
        assert part["text"] == shown
        places = [("doc_kb_b_open.md", shown.index(marker)) for marker in ("[1]", "[13]")]
        assert [(one["file_id"], one["index"]) for one in part["annotations"]] == places
        events = await house.all_events(response)
        place = next(at for at, event in enumerate(events) if event["type"].endswith("annotation.added"))
        before = "".join(event.get("delta", "") for event in events[:place])
        assert before == shown[: shown.index("[1]") + 3]


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
            response = await running.wait_until_ended()
            assert said(response) in (text if text != PASSAGE else ANSWER_CUT, "")
            assert "vault" not in await sinks(house, response)


async def test_what_cannot_be_looked_up_does_not_go() -> None:
    async with restricted_house(answer(BENIGN * 3)) as house:

        async def away(*_: object) -> bool:
            raise Unavailable("The database is away.")

        house.knowledge.holds_run = away  # type: ignore[method-assign]
        response = await house.ask(tools=TOOLS)
        assert (response.status, said(response)) == ("failed", "")
