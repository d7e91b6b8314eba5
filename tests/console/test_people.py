"""As two people: a reader gets the text, a restricted analyst a decision and no more than what was released."""

import pytest
from playwright.async_api import Locator, expect

from tests.console.browsing import Tab, Tabs
from tests.console.running import EXACT

pytestmark = pytest.mark.asyncio(loop_scope="session")

OPEN = "Where are the biggest risks in our partner contracts?"
DETAILS = "Explain in detail how our partner contracts could be improved."
SECRET = ("0.62", "0.48", "Harrow", "Blue Heron", "Brightwater")
GAPS_ZH = "我们的赔付流程有哪些薄弱环节？"


def side(tab: Tab, name: str) -> Locator:
    return tab.page.get_by_role("region", name=name)


async def both_ended(tab: Tab) -> None:
    await expect(tab.page.locator("[data-status=completed]")).to_have_count(2)


async def analyst_asked(tab: Tab, question: str) -> Locator:
    """Ask a suggested question as both; return the analyst's side when both are answered."""
    await tab.open("people")
    await tab.page.get_by_role("button", name=question).click()
    await both_ended(tab)
    return side(tab, "The restricted analyst")


async def test_one_question_is_answered_to_one_and_refused_to_the_other(tab: Tab):
    analyst = await analyst_asked(tab, EXACT)
    await expect(side(tab, "The reader")).to_contain_text("0.62 euros a parcel")
    await expect(analyst).to_contain_text("Refused before anything was searched: it asks for an exact value.")
    await expect(analyst).to_contain_text("Nothing was released.")
    assert "0.62" not in await analyst.inner_text()
    assert await tab.axe() == []
    await tab.picture("people-refused")


async def test_what_is_released_comes_with_the_decision_and_without_text(tab: Tab):
    analyst = await analyst_asked(tab, OPEN)
    await expect(analyst).to_contain_text("The question passed")
    await expect(analyst).to_contain_text("A summary may leave: risks.")
    await expect(analyst).to_contain_text("The relationship looks workable")
    told = await analyst.inner_text()
    with tab.running.pair.http(tab.running.admin_key) as admin:
        record = admin.get("/v1/audit/safe_summaries", params={"limit": 1}).json()["data"][0]
    assert (record["decision"], record["reason"]) == ("answer", "risk")
    assert f"{record['chunks_found']} passages were found; the {record['chunks_sent']} that fit best were shown" in told
    assert not [word for word in SECRET if word in told]
    assert "The demo's model is a stand-in: its summaries are prepared texts" in told
    assert await tab.axe() == []
    await tab.picture("people")
    await analyst.get_by_text("See what their model was sent").click()
    result = analyst.get_by_label("Result of a tool", exact=True)
    await expect(result).to_contain_text("The relationship looks workable")
    closed = analyst.locator(".sent-parts > details:not([open]) > summary")
    while await closed.count():
        await closed.first.click()
    sent = await analyst.locator(".sent-parts").inner_text()
    assert OPEN in sent
    assert not [word for word in SECRET if word in sent]
    assert await tab.axe() == []


async def test_a_question_about_nothing_in_the_base_is_told_so(tab: Tab):
    await tab.open("people")
    await tab.page.get_by_label("Question", exact=True).fill("How could our telescopes see fainter comets?")
    await tab.page.keyboard.press("Enter")
    await both_ended(tab)
    analyst = side(tab, "The restricted analyst")
    await expect(analyst).to_contain_text("No passage was found that tells of this.")
    await expect(analyst).to_contain_text("Nothing may leave: too little was found.")


async def test_a_summary_that_quotes_is_seen_to_be_stopped(tab: Tab):
    analyst = await analyst_asked(tab, DETAILS)
    await expect(analyst).to_contain_text("The gate blocked the first summary; it was written once more.")
    await expect(analyst).to_contain_text("Checks that it failed:")
    await expect(analyst).to_contain_text("A summary may leave: advice.")
    told = await analyst.inner_text()
    assert not [word for word in SECRET if word in told]
    assert await tab.axe() == []


async def test_without_an_administrators_key_the_decision_is_not_shown(tab: Tab):
    keys = {name: key for name, key in tab.running.keys.items() if name != "admin"}
    await tab.open("people", keys)
    await tab.page.get_by_label("Question", exact=True).fill(EXACT)
    await tab.page.keyboard.press("Enter")
    await both_ended(tab)
    await expect(side(tab, "The restricted analyst")).to_contain_text("Give an administrator's key")
    await expect(side(tab, "The restricted analyst")).not_to_contain_text("exact value")


async def test_a_second_key_is_asked_for(tab: Tab):
    await tab.open("people", {"user": tab.running.demo.user_key})
    await expect(tab.page.get_by_role("heading", name="A second key is needed")).to_be_visible()
    assert await tab.axe() == []


async def test_narrow_dark_chinese_and_by_keyboard(tabs: Tabs):
    async with tabs(narrow=True, dark=True, language="zh") as tab:
        await tab.open("people")
        suggested = tab.page.get_by_role("button", name="未申报的包裹赔付多少欧元？")
        await expect(suggested).to_be_visible()
        await tab.press_until_focused("Tab", suggested)
        await tab.page.keyboard.press("Enter")
        await both_ended(tab)
        await expect(side(tab, "读者")).to_contain_text("六十欧元")
        await expect(side(tab, "受限分析员")).to_contain_text("没有放行任何内容")
        assert "六十" not in await side(tab, "受限分析员").inner_text()
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == 360
        assert await tab.axe() == []
        await tab.picture("people-zh-narrow-dark")
        await tab.page.get_by_role("button", name=GAPS_ZH).click()
        await expect(side(tab, "受限分析员")).to_contain_text("演示模型是替身")
        await both_ended(tab)
        await expect(side(tab, "受限分析员")).to_contain_text("可以放行一段摘要：薄弱之处。")
