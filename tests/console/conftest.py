"""One running pair and one browser for all tests of the page; each test is lent a tab."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from deploy.demo.public_api import PublicApi
from tests.console.browsing import Tab, Tabs
from tests.console.chromium import NEEDED, chromium_path
from tests.console.running import Running, start_running
from tests.fakes.model_server import FakeModelControl
from tests.servers.counted_embedder import CountedEmbedder
from tests.servers.fixtures import launching

if chromium_path() is None:
    pytest.exit(NEEDED, returncode=1)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The pair with the demo's knowledge and an embedder."""
    directory = tmp_path_factory.mktemp("console")
    embedder = CountedEmbedder(directory / "embedder")
    embedder.start_and_wait()
    with launching(directory) as launch:
        started = start_running(launch, directory, embedder.settings)
        # This embedder's vectors mean nothing: what the demo answers must not rest on them.
        owner = PublicApi(started.pair.backend_url, started.demo.user_key)
        for base_id in (started.demo.handbook_id, started.demo.handbook_zh_id, started.demo.contracts_id):
            owner.call("PATCH", f"/v1/knowledge_bases/{base_id}", {"embed": False})
        yield started
    embedder.kill()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The system's Chromium, without a window."""
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=chromium_path())
        yield launched
        await launched.close()


@pytest.fixture(scope="session")
def tabs(browser: Browser, running: Running) -> Tabs:
    """Open tabs: `async with tabs(narrow=True) as tab`."""
    return Tabs(browser, running)


@pytest_asyncio.fixture(loop_scope="session")
async def tab(tabs: Tabs) -> AsyncIterator[Tab]:
    """A tab, wide, light and English."""
    async with tabs() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def fake(running: Running) -> AsyncIterator[FakeModelControl]:
    """The scripted model, its script empty."""
    async with running.pair.fresh_model() as control:
        yield control
