"""Answers, documents, names and titles of somebody who means harm: they are shown, and do nothing."""

import re

import pytest
from playwright.async_api import expect

from deploy.demo.public_api import PublicApi, quote
from tests.console.browsing import Tab, Tabs, answers, ask, wait_ended
from tests.console.hostile import HOSTILE, nothing_happened
from tests.e2e.pair import MODEL
from tests.fakes.model_server import FakeModelControl, Reply

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_hostile_answer_is_only_text(tabs: Tabs, fake: FakeModelControl):
    async with tabs(model=MODEL, narrow=True) as tab:
        await fake.script(Reply(text=tuple(HOSTILE[at : at + 50] for at in range(0, len(HOSTILE), 50))))
        await tab.open()
        await ask(tab, HOSTILE[:900])
        await wait_ended(tab)
        await expect(answers(tab)).to_contain_text('<script>document.title = "taken"</script>')
        await expect(answers(tab).get_by_role("link")).to_have_text(["honest"])
        for part in ("run", "tracked"):
            await answers(tab).get_by_text(part).first.click()
        await nothing_happened(tab)
        await tab.page.reload()
        await wait_ended(tab)
        await nothing_happened(tab)


async def test_a_hostile_document_is_only_text(tab: Tab):
    api = PublicApi(tab.running.pair.backend_url, tab.running.demo.user_key)
    base_id = api.call("POST", "/v1/knowledge_bases", {"name": '<b>Base</b>"><img src=x>'})["id"]
    name = quote('<img src=x onerror="1">.md')
    text = f"# Zebra\n\nThe zebra eats <script>document.title='taken'</script> grass at noon. {HOSTILE}"
    api.call("PUT", f"/v1/knowledge_bases/{base_id}/documents/{name}", text.encode())
    try:
        await tab.open()
        await tab.page.locator("summary", has_text="bases").click()
        await expect(tab.page.get_by_role("checkbox", name="<b>Base</b>")).to_be_checked()
        await tab.page.keyboard.press("Escape")
        await ask(tab, "What does the zebra eat at noon?")
        await wait_ended(tab)
        await tab.page.get_by_role("button", name=re.compile("^Source")).first.click()
        await expect(tab.page.get_by_role("complementary", name="Passage")).to_contain_text("zebra eats <script>")
        await nothing_happened(tab)
        assert await tab.axe() == []
    finally:
        api.call("DELETE", f"/v1/knowledge_bases/{base_id}")
