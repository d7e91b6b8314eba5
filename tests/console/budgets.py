"""`make console-budgets`: what the page weighs, and how soon a new tab shows something.

Each first paint is that of a tab which has nothing in its cache, from the navigation to the first contentful paint.
"""

import asyncio
import os
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from backend.console.http.page_files import load_page
from tests.console.chromium import NEEDED, chromium_path
from tests.e2e.pair import lone_backend
from tests.servers.fixtures import launching

MOST_BYTES = 120 * 1024
MOST_MS = 200
ROUNDS = 15
_PAINTED = """new Promise(resolve => new PerformanceObserver(list => {
    const found = list.getEntriesByName("first-contentful-paint")[0];
    if (found) resolve(found.startTime);
}).observe({type: "paint", buffered: true}))"""


def weigh() -> bool:
    """Print the bytes that a browser gets, and return whether they are within the budget."""
    sizes = {name: len(file.compressed) for name, file in load_page().items() if name != "LICENSES.txt"}
    for name, size in sizes.items():
        print(f"{name:12} {size:7,} bytes gzipped")
    total = sum(sizes.values())
    print(f"{'in all':12} {total:7,} bytes gzipped, at most {MOST_BYTES:,}")
    return total <= MOST_BYTES


async def time_paints(url: str) -> bool:
    """Print how soon new tabs show something, and return whether the median is within the budget."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path())
        paints = [await _first_paint(browser, url) for _ in range(ROUNDS)]
        await browser.close()
    median = statistics.median(paints)
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"{busy:.1f} processes want each core now; more than 1 make paints late")
    print(
        f"first paint  {median:.0f} ms (median of {ROUNDS}; {min(paints):.0f} to {max(paints):.0f}), at most {MOST_MS}"
    )
    return median <= MOST_MS


async def _first_paint(browser: Browser, url: str) -> float:
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(url)
    painted: float = await page.evaluate(_PAINTED)
    await context.close()
    return painted


def main() -> int:
    """Measure, and return 1 where a budget is exceeded."""
    is_light = weigh()
    if chromium_path() is None:
        print(NEEDED)
        return 1
    with tempfile.TemporaryDirectory() as directory, launching(Path(directory)) as launch:
        backend = lone_backend(launch, Path(directory))
        is_fast = asyncio.run(time_paints(f"{backend.backend_url}/"))
    return 0 if is_light and is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
