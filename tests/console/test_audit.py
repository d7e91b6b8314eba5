"""Audit: records and figures are those of the API, can be filtered and taken away, and are for administrators alone."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, expect

from deploy.demo.loading import ANALYST_ID
from tests.console.browsing import Tab, Tabs
from tests.console.running import DEMO_MODEL, EXACT, Running

pytestmark = pytest.mark.asyncio(loop_scope="session")

REASONS = {"risk": "risks", "priority": "priorities", "advice": "advice", "gap": "gaps", "diagnosis": "a diagnosis"}
OPEN = "What should we do first about our partner contracts?"


@pytest.fixture(scope="module")
def records(running: Running) -> list[dict[str, Any]]:
    """The audit after a refusal and an answer, the newest record first."""
    tools = [{"type": "file_search", "vector_store_ids": [running.demo.contracts_id]}]
    with running.pair.http(running.demo.restricted_key) as analyst:
        for question in (EXACT, OPEN):
            assert analyst.post(
                "/v1/responses", json={"model": DEMO_MODEL, "input": question, "tools": tools}
            ).is_success
    with running.pair.http(running.admin_key) as admin:
        return admin.get("/v1/audit/safe_summaries", params={"limit": 100}).json()["data"]


def rows(tab: Tab, name: str = "Records") -> Locator:
    return tab.page.get_by_role("table", name=name).locator("tbody tr")


async def test_records_their_figures_and_their_details(tab: Tab, records: list[dict[str, Any]]):
    await tab.open("audit")
    await expect(rows(tab)).to_have_count(len(records))
    refused = sum(record["decision"] == "refuse" for record in records)
    await expect(tab.page.get_by_role("status").first).to_have_text(
        f"{len(records)} records, {refused} of them refused"
    )
    await expect(rows(tab).first).to_contain_text("Answered")
    await expect(rows(tab).first).to_contain_text(REASONS[records[0]["reason"]])
    left = records[0]["budget_after"][0]
    await expect(rows(tab).first).to_contain_text(f"{left['day']} / {left['month']}")
    await expect(rows(tab).nth(1)).to_contain_text("it asks for an exact value")
    await tab.page.get_by_text("As a table").click()
    shown = [await row.get_by_role("cell").all_inner_texts() for row in await rows(tab, "Searches over time").all()]
    assert sum(int(row[1]) for row in shown) == refused
    assert sum(int(row[2]) for row in shown) == len(records) - refused
    assert await tab.axe() == []
    await tab.page.get_by_text("As a table").click()
    await tab.picture("audit")
    await rows(tab).first.get_by_role("button").click()
    dialog = tab.page.get_by_role("dialog")
    await expect(dialog).to_contain_text(records[0]["preview"])
    await expect(dialog).to_contain_text(records[0]["turn_id"])
    assert await tab.axe() == []


async def test_records_are_plotted_though_the_clock_of_the_browser_is_behind(tab: Tab, records: list[dict[str, Any]]):
    tab.can_be_lent_again = False
    await tab.page.clock.set_fixed_time(records[-1]["created_at"] - 7200)
    await tab.open("audit")
    await expect(rows(tab)).to_have_count(len(records))
    await tab.page.get_by_text("As a table").click()
    shown = [await row.get_by_role("cell").all_inner_texts() for row in await rows(tab, "Searches over time").all()]
    assert sum(int(row[1]) + int(row[2]) for row in shown) == len(records)


async def test_filters_and_the_file_for_other_programs(tab: Tab, records: list[dict[str, Any]]):
    await tab.open("audit")
    await expect(rows(tab)).to_have_count(len(records))
    await tab.page.get_by_label("Decision").select_option("Answered")
    answered = [record for record in records if record["decision"] == "answer"]
    await expect(rows(tab)).to_have_count(len(answered))
    async with tab.page.expect_download() as downloading:
        await tab.page.get_by_role("button", name="Download as CSV").click()
    path = Path(await (await downloading.value).path())
    written = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    for field in ("id", "reason", "user_hash", "preview"):
        assert [row[field] for row in written] == [record[field] for record in answered]
    await tab.page.get_by_label("Decision").select_option("Any")
    await tab.page.get_by_label("Reason").select_option("it asks for an exact value")
    exact = [record for record in records if record["reason"] == "exact_value"]
    await expect(rows(tab)).to_have_count(len(exact))
    await tab.page.get_by_label("User id").fill("nobody")
    await tab.page.keyboard.press("Enter")
    await expect(tab.page.get_by_text("No record fits.")).to_be_visible()
    await tab.page.get_by_label("User id").fill(ANALYST_ID)
    await tab.page.keyboard.press("Enter")
    await expect(rows(tab)).to_have_count(len(exact))


async def test_narrow_dark_chinese_and_by_keyboard(tabs: Tabs, records: list[dict[str, Any]]):
    async with tabs(narrow=True, dark=True, language="zh") as tab:
        await tab.open("audit")
        row = rows(tab, "记录").first.get_by_role("button")
        await expect(row).to_be_visible()
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == 360
        assert await tab.axe() == []
        await tab.picture("audit-zh-narrow-dark")
        await tab.press_until_focused("Tab", row)
        await tab.page.keyboard.press("Enter")
        await expect(tab.page.get_by_role("dialog")).to_contain_text(records[0]["turn_id"])
        await tab.page.keyboard.press("Escape")
        await expect(row).to_be_focused()
