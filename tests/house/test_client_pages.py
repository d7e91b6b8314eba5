"""Each client's page shows the very program that is run, and each lock of a client has hashes and no address."""

import json

import pytest

from tests.clients.catalogue import CLIENTS, ForeignClient
from tests.clients.results import with_summary
from tests.house.sources import ROOT

_PAGES = ROOT / "docs" / "clients"
_OF_EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.folder)


def shows(page: str, program: str) -> bool:
    """Whether a page holds a program as a block of its own."""
    return f"\n{program}```\n" in page


@_OF_EVERY_CLIENT
def test_the_page_shows_the_program_that_is_run(client: ForeignClient):
    page = (_PAGES / client.page_name).read_text(encoding="utf-8")
    assert page.startswith(f"# {client.title}\n")
    assert shows(page, client.quickstart.read_text(encoding="utf-8"))


@_OF_EVERY_CLIENT
def test_the_pages_and_the_table_are_linked(client: ForeignClient):
    for name in ("README.md", "table.md"):
        assert f"[{client.title}]({client.page_name})" in (_PAGES / name).read_text(encoding="utf-8")


@_OF_EVERY_CLIENT
def test_the_table_tells_the_locked_versions(client: ForeignClient):
    table = (_PAGES / "table.md").read_text(encoding="utf-8")
    row = next(line for line in table.splitlines() if line.startswith(f"| [{client.title}]"))
    assert all(f"{name} {version}" in row for name, version in client.versions().items())


@_OF_EVERY_CLIENT
def test_every_package_of_the_lock_has_a_hash_and_no_address(client: ForeignClient):
    text = client.lock.read_text(encoding="utf-8")
    if client.language == "python":
        assert text.count("==") <= text.count("--hash=sha256:")
        assert "://" not in text
    else:
        packages = {name: entry for name, entry in json.loads(text)["packages"].items() if name}
        assert packages
        assert [name for name, entry in packages.items() if "integrity" not in entry or "resolved" in entry] == []


def test_readme_says_what_the_table_says():
    page, readme = (_PAGES / "table.md").read_text(encoding="utf-8"), (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_summary(readme, page) == readme
    assert with_summary(readme, page.replace("1/1", "0/1")) != readme


def test_the_check_bites():
    assert shows("# A\n\n```python\na = 1\n```\n", "a = 1\n")
    assert not shows("# A\n\n```python\na = 2\n```\n", "a = 1\n")
