"""The frame of the page: keys, languages, colours, the menu of a narrow screen, and how its files are sent."""

import re

import pytest
from playwright.async_api import expect

from tests.console.browsing import Tab, Tabs
from tests.console.running import Running

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROMISES = {
    "en": {
        "As two people": "Knowledge can be used without being revealed.",
        "Prompt x-ray": "The beginning of a prompt never moves.",
    },
    "zh": {"两人对照": "知识可以被使用，而不被泄露。", "提示词透视": "提示词的开头从不移动。"},
}


async def test_keys_come_in_the_address_and_leave_it(tab: Tab):
    await tab.open()
    await expect(tab.page.get_by_role("navigation", name="Views")).to_be_visible()
    shown: str = await tab.page.evaluate("location.href")
    assert not any(key in shown for key in tab.running.keys.values())
    await tab.page.reload()
    await expect(tab.page.get_by_role("navigation", name="Views")).to_be_visible()
    assert tab.running.demo.user_key not in await tab.page.evaluate("JSON.stringify(localStorage)")


async def test_keys_are_taken_from_the_address_of_an_open_page(tab: Tab):
    await tab.open(keys={})
    await expect(tab.page.get_by_role("button", name="Use these keys")).to_be_visible()
    await tab.open()
    await expect(tab.page.get_by_role("navigation", name="Views")).to_be_visible()
    shown: str = await tab.page.evaluate("location.href")
    assert not any(key in shown for key in tab.running.keys.values())


async def test_who_has_no_key_is_asked_for_one_and_told_which_is_wrong(tab: Tab):
    await tab.open(keys={})
    await tab.page.get_by_label("Your key").fill("no-key-of-this-server")
    await tab.page.get_by_role("button", name="Use these keys").click()
    await expect(tab.page.get_by_role("alert")).to_have_text("This key is not valid on this server.")
    assert await tab.axe() == []
    await tab.page.get_by_label("Your key").fill(tab.running.demo.user_key)
    await tab.page.keyboard.press("Enter")
    await expect(tab.page.get_by_role("navigation", name="Views")).to_be_visible()


async def test_language_and_colours_are_the_browsers_until_chosen(tabs: Tabs):
    async with tabs(dark=True, language="zh") as tab:
        await tab.open()
        await expect(tab.page.get_by_role("link", name="对话", exact=True)).to_be_visible()
        assert await tab.page.evaluate("document.documentElement.lang") == "zh-CN"
        dark = await tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
        await tab.page.get_by_label("语言").select_option("en")
        await tab.page.get_by_label("Colours").select_option("light")
        assert await tab.page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
        await tab.page.reload()
        await expect(tab.page.get_by_role("link", name="Chat", exact=True)).to_be_visible()
        assert await tab.page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


async def test_the_first_view_leads_to_both_promises_and_each_view_says_its_own(tabs: Tabs):
    for language, promises in PROMISES.items():
        async with tabs(language=language) as tab:
            await tab.open()
            for view, promise in promises.items():
                await tab.page.get_by_role("main").get_by_role("link", name=re.compile(f"^{promise}")).click()
                await expect(tab.page.get_by_role("heading", level=1)).to_have_text(view)
                await expect(tab.page.locator("main header")).to_contain_text(promise)
                assert await tab.axe() == []
                await tab.page.go_back()


async def test_a_narrow_screen_has_a_menu_and_nothing_beyond_its_edge(tabs: Tabs):
    async with tabs(narrow=True) as tab:
        await tab.open()
        await tab.page.get_by_role("button", name="Menu").click()
        await expect(tab.page.get_by_role("link", name="Chat", exact=True)).to_be_visible()
        assert await tab.axe() == []
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == 360


async def test_a_server_that_is_away_is_said_once_beside_the_controls_and_until_it_is_back(tabs: Tabs):
    async with tabs(narrow=True) as tab:
        await tab.page.route("**/v1/**", lambda route: route.abort())
        await tab.open()
        note = tab.page.get_by_role("region", name="Notes").get_by_text("The server cannot be reached.")
        await expect(note).to_have_count(1)
        send, menu = (tab.page.get_by_role("button", name=name, exact=True) for name in ("Send", "Menu"))
        await menu.click()
        await menu.click()
        await tab.page.get_by_label("Question", exact=True).fill("Is anybody there?")
        await send.click(trial=True)
        await expect(note).to_have_count(1)
        assert await tab.axe() == []
        await tab.page.unroute("**/v1/**")
        await tab.page.evaluate("location.hash = '#/people'")
        await expect(tab.page.get_by_role("button", name="Ask as both")).to_be_visible()
        await expect(note).to_have_count(0)


async def test_the_policy_lets_nothing_else_in(running: Running):
    with running.pair.http("") as client:
        page = client.get("/")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert page.headers["cache-control"] == "no-cache"
        again = client.get("/", headers={"if-none-match": page.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


async def test_text_cannot_become_html(tab: Tab):
    await tab.open()
    refused = await tab.page.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; } catch (e) { return e.name } }"
    )
    assert refused == "TypeError"
    assert tab.faults
    tab.faults.clear()


@pytest.mark.parametrize("view", ["audit", "operations"])
async def test_only_administrators_see_it(tabs: Tabs, running: Running, view: str):
    own = running.demo.user_key
    async with tabs() as without, tabs() as refused:
        await without.open(view, {"user": own})
        await expect(without.page.get_by_role("heading", name="An administrator's key is needed")).to_be_visible()
        await refused.open(view, {"user": own, "admin": own})
        await expect(refused.page.get_by_role("alert")).to_contain_text("admin")
