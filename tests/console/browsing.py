"""A tab of the browser on the page, and what must never happen in it."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import axe_playwright_python
from PIL import Image
from playwright.async_api import Browser, ConsoleMessage, Locator, Page, Request, expect

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
    """A page in a context of its own; `faults` collects what must never happen, and is empty at the end."""

    page: Page
    running: Running
    faults: list[str] = field(default_factory=list[str])

    async def open(self, address: str = "", keys: Mapping[str, str] | None = None) -> None:
        """Open the page with keys in the fragment, as `make run` prints it, then go to a place in it."""
        given = self.running.keys if keys is None else keys
        await self.page.goto(f"{self.running.url}#{urlencode(given)}")
        if address:
            await self.page.evaluate("address => { location.hash = address }", f"#/{address}")

    async def axe(self) -> list[str]:
        """Return what axe-core finds wrong with the page as it is shown now, as `rule: element`."""
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
        own = urlsplit(self.running.url).netloc

        def on_request(request: Request) -> None:
            if urlsplit(request.url).netloc != own and not request.url.startswith("data:"):
                self.faults.append(f"request to {request.url}")

        def on_console(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning") and not message.text.startswith(_HARMLESS):
                self.faults.append(message.text)

        self.page.on("request", on_request)
        self.page.on("console", on_console)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("popup", lambda popup: self.faults.append(f"a window: {popup.url}"))


@asynccontextmanager
async def new_tab(
    browser: Browser,
    running: Running,
    *,
    narrow: bool = False,
    dark: bool = False,
    language: str = "en",
    model: str = DEMO_MODEL,
) -> AsyncGenerator[Tab]:
    """Lend a tab with nothing of other tabs in it; what must never happen in it fails the test at its end."""
    context = await browser.new_context(
        viewport=NARROW if narrow else WIDE,  # pyright: ignore[reportArgumentType]
        color_scheme="dark" if dark else "light",
        locale={"en": "en-GB", "zh": "zh-CN"}[language],
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    # what a person chooses in a tab stays, as in a browser
    await context.add_init_script(f"localStorage['ballast.model'] ??= JSON.stringify({model!r})")
    tab = Tab(await context.new_page(), running)
    tab.watch()
    try:
        yield tab
        assert tab.faults == []
    finally:
        await context.close()
