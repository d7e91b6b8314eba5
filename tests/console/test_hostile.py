"""Answers, documents, names and titles of somebody who means harm: they are shown, and do nothing."""

import re

import pytest
from playwright.async_api import expect

from deploy.demo.public_api import PublicApi, quoted
from tests.console.browsing import Tab, Tabs
from tests.console.test_chat import answers, ask, wait_ended
from tests.e2e.pair import MODEL
from tests.fakes.model_server import FakeModelControl, Reply

pytestmark = pytest.mark.asyncio(loop_scope="session")

TABLE = "|" + "c|" * 200 + "\n|" + "-|" * 200 + "\n" + ("|" + "cell |" * 200 + "\n") * 50
HOSTILE = f"""<script>document.title = "taken"</script><img src=x onerror="document.title = 'taken'">

[run](javascript:document.title='taken') [run](JaVaScRiPt&#58;document.title='taken')
[run](data:text/html,<script>1</script>)
[file](file:///etc/passwd) [other](//other.example/x) <javascript:document.title='taken'> [r]

[r]: javascript:document.title='taken'

![tracked](http://other.example/pixel.png) ![data](data:image/svg+xml;base64,PHN2Zz4=)

[honest](https://example.org/a?b=c) \u202eelttil a si siht\u202c \ue0000\ue001

<iframe src="http://other.example"></iframe><style>body {{ display: none }}</style><form action="http://other.example"><button>send</button></form>

{"> " * 300}deep

{TABLE}
```html
<script>document.title = "taken"</script>
```
"""


async def nothing_happened(tab: Tab) -> None:
    """Check that the page holds none of it as elements, and that no link leads where none may."""
    assert await tab.page.title() == "Ballast"
    assert (
        await tab.page.locator("#app").locator("script, img, iframe, form[action], style, object, embed").count() == 0
    )
    addresses: list[str] = await tab.page.evaluate("[...document.links].map(link => link.href)")
    assert all(address.startswith((tab.running.url, "https://example.org/")) for address in addresses), addresses
    assert "\u202e" not in await tab.page.locator("#app").inner_text()
    assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


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
    name = quoted('<img src=x onerror="1">.md')
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
