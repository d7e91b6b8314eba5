"""A tab of the browser on the page, and what must never happen in it."""

import json
import os
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import axe_playwright_python
from PIL import Image
from playwright.async_api import Browser, ConsoleMessage, Error, Locator, Page, Request, expect

from tests.console.running import DEMO_MODEL, Running

WIDE = {"width": 1280, "height": 860}
NARROW = {"width": 360, "height": 740}
PATIENCE_MS = 20_000
_AXE = files(axe_playwright_python) / "axe.min.js"
_FINDINGS = """axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations.flatMap(
    each => each.nodes.map(node => `${each.id}: ${node.html.slice(0, 200)} ${node.failureSummary.slice(0, 200)}`)))"""
_HARMLESS = ("Failed to load resource",)  # an answer of 400 and above, which a test may want


@dataclass
class Tab:
    """A page; `faults` collects what must never happen, and is empty at the end.

    A test that has changed what cannot be changed back, such as the clock, says that the tab cannot be lent again.
    """

    page: Page
    running: Running
    faults: list[str] = field(default_factory=list[str])
    can_be_lent_again: bool = True

    async def open(self, address: str = "", keys: Mapping[str, str] | None = None) -> None:
        """Open the page with keys in the fragment, as `make run` prints it, then go to a place in it."""
        given = self.running.keys if keys is None else keys
        await self.page.goto(f"{self.running.url}#{urlencode(given)}")
        if address:
            await self.page.evaluate("address => { location.hash = address }", f"#/{address}")

    async def axe(self) -> list[str]:
        """Return what axe-core finds wrong with the page as it is shown now, as `rule: element`."""
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        found: list[str] = await self.page.evaluate(_FINDINGS)
        return found

    async def press_until_focused(self, key: str, wanted: Locator, most: int = 80) -> None:
        """Press a key until it has led the focus to an element, as somebody without a mouse does."""
        for _ in range(most):
            if await wanted.evaluate("element => element === document.activeElement"):
                return
            await self.page.keyboard.press(key)
        raise AssertionError(f"{key} does not lead to {wanted}")

    async def picture(self, name: str) -> None:
        """Keep a picture of the page where `TESTS_SCREENSHOTS` names a folder for it."""
        folder = os.environ.get("TESTS_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            drawn = await self.page.screenshot(animations="disabled")
            # few colours are enough for a page of text, and keep the repository small
            Image.open(BytesIO(drawn)).convert("RGB").quantize(128).save(Path(folder) / f"{name}.png", optimize=True)

    def watch(self) -> None:
        """Note errors, violations of the page's policy, dialogs, and requests to another host."""
        self.page.on("request", self._on_request)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", self._on_error)
        self.page.on("popup", self._on_popup)

    def leave(self) -> None:
        """Watch no longer."""
        self.page.remove_listener("request", self._on_request)
        self.page.remove_listener("console", self._on_console)
        self.page.remove_listener("pageerror", self._on_error)
        self.page.remove_listener("popup", self._on_popup)

    def _on_request(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.running.url).netloc and not request.url.startswith("data:"):
            self.faults.append(f"request to {request.url}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_HARMLESS):
            self.faults.append(message.text)

    def _on_error(self, error: Error) -> None:
        self.faults.append(str(error))

    def _on_popup(self, popup: Page) -> None:
        self.faults.append(f"a window: {popup.url}")


class Look(NamedTuple):
    """How a tab is looked at, and by which model questions are answered until another is chosen."""

    narrow: bool = False
    dark: bool = False
    language: str = "en"
    model: str = DEMO_MODEL


class Tabs:
    """Lends tabs. One that comes back is emptied and lent again: a new one takes most of what a test would."""

    def __init__(self, browser: Browser, running: Running) -> None:
        self._browser = browser
        self._running = running
        self._free = defaultdict[Look, list[Page]](list)

    @asynccontextmanager
    async def __call__(self, **wanted: Any) -> AsyncGenerator[Tab]:
        """Lend a tab with nothing of other tests in it; what must never happen in it fails the test at its end."""
        look = Look(**wanted)
        page = self._free[look].pop() if self._free[look] else await self._new_page(look)
        tab = Tab(page, self._running)
        tab.watch()
        is_clean = False
        try:
            yield tab
            assert tab.faults == []
            is_clean = tab.can_be_lent_again
        finally:
            tab.leave()
            if is_clean:
                await self._empty(page)
                self._free[look].append(page)
            else:
                await page.context.close()

    async def _new_page(self, look: Look) -> Page:
        context = await self._browser.new_context(
            viewport=NARROW if look.narrow else WIDE,  # pyright: ignore[reportArgumentType]
            color_scheme="dark" if look.dark else "light",
            locale={"en": "en-GB", "zh": "zh-CN"}[look.language],
            reduced_motion="reduce",
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        # what a person chooses in a tab stays, as in a browser
        model = json.dumps(json.dumps(look.model))
        await context.add_init_script(f"if (location.host) localStorage['ballast.model'] ??= {model}")
        return await context.new_page()

    async def _empty(self, page: Page) -> None:
        """Leave nothing of a test in a page: no other tab, no route, and nothing that the browser has kept."""
        for other in page.context.pages:
            if other is not page:
                await other.close()
        await page.unroute_all(behavior="ignoreErrors")
        await page.evaluate("sessionStorage.clear()")
        await page.goto("about:blank")
        browser = await page.context.new_cdp_session(page)
        origin = self._running.pair.backend_url
        await browser.send(  # pyright: ignore[reportUnknownMemberType]
            "Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"}
        )
        await browser.detach()


async def ask(tab: Tab, text: str) -> None:
    await tab.page.get_by_label("Question", exact=True).fill(text)
    await tab.page.keyboard.press("Enter")


def turns(tab: Tab) -> Locator:
    return tab.page.get_by_role("article")


def answers(tab: Tab) -> Locator:
    return tab.page.get_by_role("region", name="Answer")


async def wait_ended(tab: Tab, status: str = "completed", turn: int = -1) -> None:
    await expect(turns(tab).nth(turn)).to_have_attribute("data-status", status)
