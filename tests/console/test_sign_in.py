"""A person signs in to the page, sees what is theirs, and signs out."""

import re
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.console.browsing import NARROW, PATIENCE_MS, Tab
from tests.console.running import Running
from tests.servers.fixtures import launching
from tests.servers.identity_provider import SignInBackend, start_backend, start_provider

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignInBackend]:
    directory = tmp_path_factory.mktemp("sign-in")
    with launching(directory) as launch:
        issuer = start_provider(launch, directory, {"sub": "ada", "roles": ["root"]}, {"sub": "bob"})
        yield start_backend(launch, directory, issuer)


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, backend: SignInBackend) -> AsyncIterator[Page]:
    """A narrow page of the backend, in Chinese and dark."""
    context = await browser.new_context(
        viewport=NARROW,  # pyright: ignore[reportArgumentType]
        color_scheme="dark",
        locale="zh-CN",
    )
    context.set_default_timeout(PATIENCE_MS)
    opened = await context.new_page()
    await opened.goto(backend.url)
    yield opened
    await context.close()


async def sign_in(page: Page, subject: str) -> None:
    await page.get_by_role("link", name="登录").click()
    await page.get_by_role("button", name=subject, exact=True).click()


async def test_a_person_signs_in_sees_their_own_and_signs_out(page: Page, running: Running, backend: SignInBackend):
    look = Tab(page, running)
    await expect(page.get_by_role("heading", name="能回答问题")).to_be_visible()
    assert await look.axe() == []
    await sign_in(page, "ada")
    await page.get_by_role("button", name="菜单").click()
    await expect(page.get_by_text("已登录：ada")).to_be_visible()
    assert await look.axe() == []
    assert await page.evaluate("document.cookie") == ""
    assert "ballast.keys" not in await page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")
    await page.get_by_role("link", name="知识库").click()
    await page.get_by_role("button", name=re.compile("新建|创建")).first.wait_for()
    await page.reload()
    await page.get_by_role("button", name="菜单").click()
    await page.get_by_role("button", name="退出登录").click()
    await page.wait_for_url("**/oauth2/end_session")
    await page.goto(backend.url)
    await expect(page.get_by_role("link", name="登录")).to_be_visible()


async def test_the_page_asks_again_where_a_session_was_ended_elsewhere(page: Page, backend: SignInBackend):
    await sign_in(page, "bob")
    await page.get_by_role("button", name="菜单").wait_for()
    ended = await page.evaluate(
        "fetch('/session', {method: 'DELETE', headers: {'X-Ballast-Page': '1'}}).then(answer => answer.status)"
    )
    assert ended == 200
    await page.get_by_role("button", name="菜单").click()
    await page.get_by_role("link", name="知识库").click()
    await expect(page.get_by_role("link", name="登录")).to_be_visible()


async def test_no_other_site_frames_the_page_or_uses_its_session(page: Page, backend: SignInBackend):
    await sign_in(page, "bob")
    await page.get_by_role("button", name="菜单").wait_for()
    other = await page.context.new_page()
    body = _EVIL.format(url=backend.url)
    await other.route("http://evil.test/**", lambda route: route.fulfill(body=body, content_type="text/html"))
    await other.goto("http://evil.test/")
    outcome = await other.wait_for_function("window.outcome")
    assert await outcome.json_value() == "refused"
    assert [frame.url for frame in other.frames if frame.url.startswith(f"{backend.url}/#")] == []
    assert "chrome-error://chromewebdata/" in [frame.url for frame in other.frames]
    kept = await page.evaluate("fetch('/session', {headers: {'X-Ballast-Page': '1'}}).then(answer => answer.status)")
    assert kept == 200
    bases = "fetch('/v1/knowledge_bases', {headers: {'X-Ballast-Page': '1'}}).then(answer => answer.json())"
    assert (await page.evaluate(bases))["data"] == []


_EVIL = """<!doctype html>
<form id="form" method="post" target="sent" action="{url}/v1/knowledge_bases" enctype="text/plain">
<input name='{{"name": "evil", "summary": "' value='"}}'></form>
<iframe name="sent"></iframe><iframe id="frame"></iframe><script>
const frame = document.getElementById("frame");
frame.onload = async () => {{
  const options = {{method: "DELETE", credentials: "include", headers: {{"X-Ballast-Page": "1"}}}};
  document.querySelector("iframe[name=sent]").onload = async () => {{
    window.outcome = await fetch("{url}/session", options).then(() => "sent", () => "refused");
  }};
  document.getElementById("form").submit();
}};
frame.src = "{url}/";
</script>"""
