"""Prompt x-ray: its figures are those of `/prompts`, and every part can be read."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from playwright.async_api import Route, expect

from tests.console.browsing import Tab, Tabs
from tests.console.running import DEMO_MODEL, Running

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTIONS = ("How soon must a page be acknowledged?", "When must nothing be deployed?", "How long are backups kept?")


def talk(running: Running, questions: Sequence[str] = QUESTIONS) -> tuple[str, list[dict[str, Any]]]:
    """Run turns; return their conversation, and its model calls as the API tells them."""
    tools = [{"type": "file_search", "vector_store_ids": [running.demo.handbook_id]}]
    place: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    with running.pair.http(running.demo.user_key) as client:
        for question in questions:
            body = {"model": DEMO_MODEL, "input": question, "tools": tools, **place}
            response = client.post("/v1/responses", json=body).json()
            place = {"conversation": response["conversation"]["id"]}
            calls += client.get(f"/v1/responses/{response['id']}/prompts").json()["data"]
    return place["conversation"], calls


async def test_the_figures_are_those_of_the_api(tab: Tab):
    conversation_id, calls = talk(tab.running)
    await tab.open(f"xray/{conversation_id}")
    rows = tab.page.get_by_role("table", name="Figures of each model call").get_by_role("row")
    await expect(rows).to_have_count(len(calls) + 1)
    shown = [[await cell.inner_text() for cell in await row.get_by_role("cell").all()] for row in await rows.all()][1:]
    for (_, sent, reused, tokens, cached, *_), call in zip(shown, calls, strict=True):
        assert reused == f"{call['reused_bytes']:,}"
        assert tokens == f"{call['gauge']['used_tokens']:,}"
        assert cached == f"{call['cached_tokens']:,}"
        assert int(sent.replace(",", "")) >= call["reused_bytes"]
    bars = tab.page.get_by_role("listbox")
    for bar, call in zip(await bars.all(), calls, strict=True):
        parts = [str(await part.get_attribute("aria-label")) for part in await bar.get_by_role("option").all()]
        assert len(parts) == len(call["messages"]) + 1
        old = [int(part.split(", ")[1].removesuffix(" bytes").replace(",", "")) for part in parts if "before" in part]
        assert sum(old) == call["reused_bytes"]
    layouts = tab.page.get_by_role("table", name="The same words in other layouts").get_by_role("row")
    costs = [(await row.get_by_role("cell").all_inner_texts())[-1] for row in (await layouts.all())[1:]]
    as_sent, *_, before_question, _ = (int(cost.replace(",", "")) for cost in costs)
    assert as_sent < before_question
    saved, amount = (sum(call["cost"][name] for call in calls) for name in ("saved", "amount"))
    assert saved > 0
    figures = tab.page.locator("dl.figures")
    await expect(figures).to_contain_text(f"{amount:.3g}")
    await expect(figures).to_contain_text(f"{amount + saved:.3g}")
    await expect(figures).to_contain_text("Prices are those of the models file")
    await expect(figures).to_contain_text("100% of the earlier prompt came again unchanged.")
    assert await tab.axe() == []
    await tab.picture("xray")


async def test_the_cause_of_a_miss_is_said(tab: Tab):
    conversation_id, _ = talk(tab.running)

    async def miss(route: Route) -> None:
        answered = await route.fetch()
        told = await answered.json()
        told["data"][0] |= {"cache_miss": "evicted", "cache_diagnosis": "unchanged"}
        await route.fulfill(response=answered, json=told)

    await tab.page.route("**/prompts?layouts=true", miss)
    await tab.open(f"xray/{conversation_id}")
    await expect(tab.page.locator(".bars")).to_contain_text("probably evicted; it says: unchanged.")


async def test_the_newest_chat_is_shown_and_not_a_later_question_as_two_people(tab: Tab):
    chat_id, _ = talk(tab.running, QUESTIONS[:1])
    with tab.running.pair.http(tab.running.demo.user_key) as client:
        client.post(f"/v1/conversations/{chat_id}", json={"metadata": {"title": "Pages"}}).raise_for_status()
    talk(tab.running, QUESTIONS[:1])
    await tab.open("xray")
    await expect(tab.page.get_by_label("Conversation", exact=True)).to_have_value(chat_id)


async def test_every_part_is_reached_by_keyboard_and_opens(tab: Tab):
    conversation_id, _ = talk(tab.running)
    await tab.open(f"xray/{conversation_id}")
    bar = tab.page.get_by_role("listbox").last
    await expect(bar).to_be_visible()
    await tab.press_until_focused("Tab", bar)
    readout = tab.page.locator(".readout")
    await expect(readout).to_contain_text("Tools")
    await tab.page.keyboard.press("End")
    while "Question" not in await readout.inner_text():
        await tab.page.keyboard.press("ArrowLeft")
    chosen = bar.get_by_role("option", name="Question", selected=True)
    assert await bar.get_attribute("aria-activedescendant") == await chosen.get_attribute("id")
    await tab.page.keyboard.press("Enter")
    dialog = tab.page.get_by_role("dialog", name="Question")
    await expect(dialog).to_contain_text(QUESTIONS[-1])
    assert await tab.axe() == []
    await tab.page.keyboard.press("Escape")
    await expect(bar).to_be_focused()
    await expect(readout).to_contain_text("Question")


@pytest.mark.parametrize("in_lanes", [False, True])
async def test_the_share_that_came_again_is_measured_where_calls_follow_each_other(tab: Tab, *, in_lanes: bool):
    conversation_id, _ = talk(tab.running)

    async def change(route: Route) -> None:
        answer = await route.fetch()
        found = await answer.json()
        for call in found["data"]:
            call["messages"][0]["content"] += f" {call['gauge']['used_tokens']}"
            call |= {"response_id": f"resp_{call['gauge']['used_tokens']}"} if in_lanes else {}
        await route.fulfill(json=found)

    await tab.page.route("**/prompts?layouts=true", change)
    await tab.open(f"xray/{conversation_id}")
    share = tab.page.locator("dl.figures").get_by_text("of the earlier prompt came again unchanged.")
    await expect(tab.page.get_by_role("listbox").first).to_be_visible()
    assert await share.count() == (0 if in_lanes else 1)
    assert in_lanes or int((await share.inner_text()).partition("%")[0]) < 90


async def test_one_turn_leads_to_a_second_question(tab: Tab):
    conversation_id, _ = talk(tab.running, QUESTIONS[:1])
    await tab.open(f"xray/{conversation_id}")
    await tab.page.get_by_role("link", name="Ask a second question in this chat").click()
    await expect(tab.page.locator("[data-status=completed]")).to_have_count(1)
    assert conversation_id in tab.page.url


async def test_what_stands_behind_the_log_says_that_it_is_not_sent_again(tab: Tab):
    with tab.running.pair.http(tab.running.demo.user_key) as client:
        agent = {
            "instructions": "Be brief.",
            "reminder": "Remember to be brief.",
            "model": DEMO_MODEL,
            "placement": "classic",
        }
        assert client.put("/v1/agents/brief", json=agent).status_code in (200, 201)
        answer = client.post("/v1/responses", json={"model": "brief", "input": "Hello"}).json()
    await tab.open(f"xray/{answer['conversation']['id']}")
    part = tab.page.get_by_role("option", name="Reminder,")
    await expect(part).to_have_attribute("aria-label", re.compile("for this call alone$"))
    await part.hover()
    await expect(tab.page.locator(".readout")).to_contain_text("is not sent again by design")
    await expect(tab.page.locator(".legend")).to_contain_text("behind the log: not sent again, by design")


async def test_epochs_are_marked_with_their_reasons(tab: Tab):
    conversation_id, _ = talk(tab.running)
    with tab.running.pair.http(tab.running.demo.user_key) as client:
        body = {"model": "fake-model", "input": "And now?", "conversation": conversation_id}
        assert client.post("/v1/responses", json=body).status_code == 200
    await tab.open(f"xray/{conversation_id}")
    await expect(tab.page.locator(".epoch")).to_have_text(
        [
            "Epoch 0, a new beginning of the prompt: the conversation began",
            "Epoch 1, a new beginning of the prompt: another model",
        ]
    )


async def test_narrow_dark_and_chinese(tabs: Tabs):
    async with tabs(narrow=True, dark=True, language="zh") as tab:
        conversation_id, calls = talk(tab.running)
        await tab.open(f"xray/{conversation_id}")
        await expect(tab.page.get_by_role("listbox")).to_have_count(len(calls))
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == 360
        assert await tab.axe() == []
        await tab.picture("xray-zh-narrow-dark")


SHOWN_BY = {
    "chat": ".suggestions",
    "people": ".people-form",
    "xray": "table:visible",
    "knowledge": ".knowledge",
    "audit": "table:visible",
    "operations": ".plot",
}


async def test_no_view_makes_the_page_scroll_beside_itself(tabs: Tabs):
    async with tabs() as tab:
        tab.can_be_lent_again = False
        talk(tab.running)
        tools = [{"type": "file_search", "vector_store_ids": [tab.running.demo.contracts_id]}]
        with tab.running.pair.http(tab.running.demo.restricted_key) as analyst:
            for question in ("Where are our biggest risks?", "What does it cost?"):
                body = {"model": DEMO_MODEL, "input": question, "tools": tools}
                assert analyst.post("/v1/responses", json=body).status_code == 200
        await tab.open()
        beyond: dict[str, int] = {}
        for width, height in ((1280, 700), (390, 844)):
            await tab.page.set_viewport_size({"width": width, "height": height})
            for view, shown in SHOWN_BY.items():
                await tab.page.evaluate("address => { location.hash = address }", f"#/{view}")
                await expect(tab.page.locator(f"main {shown}").first).to_be_visible()
                size: int = await tab.page.evaluate("document.documentElement.scrollHeight - innerHeight")
                beyond[f"{view} {width}"] = size
        assert set(beyond.values()) == {0}, beyond
