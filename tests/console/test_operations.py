"""Operations: figures and plots are those of `/metrics`, sampled while the page is open, for administrators alone."""

import re

import httpx2
import pytest
from playwright.async_api import Locator, Route, expect

from tests.console.browsing import Tab, Tabs
from tests.console.running import DEMO_MODEL, Running
from tests.e2e.pair import ADMIN_KEY

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How soon must a page be acknowledged?"
FIVE_MINUTES = 300_000
TURNS = (1, 3, 2, 1, 4, 2, 1, 2)  # in each of the intervals that follow one another


def turn(client: httpx2.Client, running: Running, times: int) -> None:
    tools = [{"type": "file_search", "vector_store_ids": [running.demo.handbook_id]}]
    for _ in range(times):
        body = {"model": DEMO_MODEL, "input": QUESTION, "tools": tools}
        assert client.post("/v1/responses", json=body).status_code == 200


def counted(client: httpx2.Client, name: str) -> float:
    """Return what the metrics say now of one counter or gauge."""
    shown = client.get("/metrics", headers={"Authorization": f"Bearer {ADMIN_KEY}"}).text
    (found,) = re.findall(rf"^{re.escape(name)} (\S+)$", shown, re.MULTILINE)
    return float(found)


def rows(tab: Tab, plot: str) -> Locator:
    return tab.page.get_by_role("table", name=plot).locator("tbody tr")


async def sums(tab: Tab, plot: str) -> list[int]:
    """Add up the columns of a plot's table."""
    shown = [await row.get_by_role("cell").all_inner_texts() for row in await rows(tab, plot).all()]
    return [sum(int(cell) for cell in column if cell != "–") for column in list(zip(*shown, strict=True))[1:]]


async def test_what_happens_while_the_page_is_open_is_plotted(tab: Tab):
    running = tab.running
    tab.can_be_lent_again = False
    await tab.page.clock.install()
    with running.pair.http(running.demo.user_key) as client:
        await tab.open("operations")
        await expect(tab.page.locator("dl.figures")).to_contain_text("turns have ended")
        await expect(tab.page.get_by_role("img")).to_have_count(5)
        before = counted(client, 'ballast_turns_total{outcome="completed"}')
        for times in TURNS:
            turn(client, running, times)
            assert client.get("/v1/responses/resp_of_nobody").status_code == 404
            async with tab.page.expect_response("**/metrics"):
                await tab.page.clock.fast_forward(FIVE_MINUTES)
        after = counted(client, 'ballast_turns_total{outcome="completed"}')
        for opened in await tab.page.get_by_text("As a table").all():
            await opened.click()
        await expect(rows(tab, "Turns")).to_have_count(len(TURNS))
        assert await sums(tab, "Turns") == [0, 0, after - before]
        assert (await sums(tab, "Errors by class"))[2] >= len(TURNS)
        shares = await rows(tab, "Prompt tokens that had been sent before").all_inner_texts()
        assert all(re.search(r"\d+%", share) for share in shares)
        waits = await rows(tab, "First token").all_inner_texts()
        assert len(waits) == len(TURNS)
        assert all(re.search(r"\d (ms|secs?)", wait) for wait in waits)
        streams, ended = (tab.page.get_by_role("definition").nth(place) for place in range(2))
        await expect(streams).to_have_text(str(int(counted(client, "ballast_streams_active"))))
        assert int((await ended.inner_text()).replace(",", "")) >= after
    assert await tab.axe() == []
    for opened in await tab.page.get_by_text("As a table").all():
        await opened.click()
    await tab.page.locator("main").evaluate("main => main.scrollTo(0, 0)")
    await tab.picture("operations")


async def test_a_server_that_begins_again_is_not_counted_below_nothing(tab: Tab):
    shown = [("1", 40), ("1", 44), ("2", 3), ("1", 45), ("2", 5)]
    rest = iter(shown)

    async def answer(route: Route) -> None:
        server, turns = next(rest, shown[-1])
        text = f'process_start_time_seconds {server}.5e+03\nballast_turns_total{{outcome="completed"}} {turns}.0\n'
        await route.fulfill(body=text, content_type="text/plain")

    await tab.page.route("**/metrics", answer)
    await tab.open("operations")
    ended = tab.page.get_by_role("definition").nth(1)
    await expect(ended).to_have_text("40")
    for _ in shown[1:]:
        async with tab.page.expect_response("**/metrics"):
            await tab.page.get_by_role("button", name="Read now").click()
    await expect(ended).to_have_text("5")
    await tab.page.get_by_text("As a table").first.click()
    assert await sums(tab, "Turns") == [0, 0, 4 + 1 + 2]


async def test_moved_metrics_are_said_to_be(tab: Tab):
    async def answer(route: Route) -> None:
        await route.fulfill(status=404, json={"error": {"message": "Nothing is here."}})

    await tab.page.route("**/metrics", answer)
    await tab.open("operations")
    await expect(tab.page.get_by_role("heading", name="Metrics are not shown at this address")).to_be_visible()
    await expect(tab.page.locator("code")).to_contain_text("$BACKEND_ADMIN_PORT/metrics")
    assert await tab.axe() == []


async def test_narrow_dark_chinese_and_by_keyboard(tabs: Tabs):
    async with tabs(narrow=True, dark=True, language="zh") as tab:
        await tab.open("operations")
        again = tab.page.get_by_role("button", name="立即读取")
        await expect(tab.page.get_by_role("img")).to_have_count(5)
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == 360
        assert await tab.axe() == []
        await tab.press_until_focused("Tab", again)
        async with tab.page.expect_response("**/metrics"):
            await tab.page.keyboard.press("Enter")
        await tab.picture("operations-zh-narrow-dark")
