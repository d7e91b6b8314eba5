"""How the page's files are sent: compressed, kept as long as they are the newest, and under the strict policy."""

import gzip

import httpx2
import pytest

from backend.console.http.page_files import PAGE, load_page
from backend.console.http.routes import console_routers
from backend.foundation.http.app import create_app
from backend.foundation.http.services import HttpOptions

OPTIONS = HttpOptions("service-token-of-the-tests")


def client(*, is_on: bool = True) -> httpx2.AsyncClient:
    app = create_app(console_routers(is_on=is_on, signs_in=False), (), OPTIONS)
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://console")


async def test_the_page_names_its_files_by_versions_that_may_be_kept() -> None:
    files = load_page()
    async with client() as browser:
        page = await browser.get("/")
        assert page.headers["cache-control"] == "no-cache"
        for name in ("console.js", "console.css"):
            address = f"/console/{name}?v={files[name].version}"
            assert f'"{address[1:]}"' in page.text
            kept = await browser.get(address)
            assert (kept.status_code, kept.content) == (200, files[name].body)
            assert "immutable" in kept.headers["cache-control"]


async def test_a_version_of_another_release_gets_the_file_there_is_and_is_asked_for_again() -> None:
    async with client() as browser:
        other = await browser.get("/console/console.js?v=0123456789abcdef")
        assert (other.status_code, other.headers["cache-control"]) == (200, "no-cache")
        same = await browser.get("/console/console.js", headers={"if-none-match": other.headers["etag"]})
        assert (same.status_code, same.content) == (304, b"")


async def test_who_takes_gzip_gets_it() -> None:
    files = load_page()
    async with client() as browser, browser.stream("GET", "/", headers={"accept-encoding": "gzip"}) as answer:
        raw = b"".join([part async for part in answer.aiter_raw()])
        assert answer.headers["content-encoding"] == "gzip"
        assert gzip.decompress(raw) == files[PAGE].body
        assert len(raw) < len(files[PAGE].body)


@pytest.mark.parametrize("path", ["/", "/console/console.js", "/console/console.css", "/console/LICENSES.txt"])
async def test_every_file_has_the_strict_policy(path: str) -> None:
    async with client() as browser:
        answer = await browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await browser.head(path)).headers["etag"] == answer.headers["etag"]


@pytest.mark.parametrize("name", ["index.html", "nothing.js", "..%2Froutes.py", "%2e%2e%2fhttp%2froutes.py"])
async def test_nothing_else_is_served(name: str) -> None:
    async with client() as browser:
        assert (await browser.get(f"/console/{name}")).status_code == 404


async def test_an_operator_may_do_without_it() -> None:
    async with client(is_on=False) as browser:
        assert (await browser.get("/")).status_code == 404
        assert (await browser.get("/console/console.js")).status_code == 404
