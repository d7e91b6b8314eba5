"""The site of the documentation: its navigation names every page once, and its pages link to nothing beside it."""

import re

from deploy.site.pages import list_written_pages
from tests.house.sources import ROOT, tracked_files

_LINK = re.compile(r"\]\(([^():#\s]+)[)#]")
_BESIDE_DOCS = ("README.md", "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def links_that_leave(page: str, text: str) -> list[str]:
    """Return the links of a page that lead to no page and no picture of the site."""
    pages = {ROOT / name for name in list_written_pages()}
    return [
        link
        for link in _LINK.findall(text)
        if (target := (ROOT / page).parent.joinpath(link).resolve()) not in pages
        and target.parent != ROOT / "docs/images"
    ]


def test_navigation_names_every_page_once():
    in_docs = [path.relative_to(ROOT).as_posix() for path in tracked_files() if path.suffix == ".md"]
    expected = [*_BESIDE_DOCS, *(name for name in in_docs if name.startswith("docs/"))]
    assert sorted(list_written_pages()) == sorted(expected)


def test_pages_link_to_pages_and_name_other_files_in_code():
    pages = {page: (ROOT / page).read_text(encoding="utf-8") for page in list_written_pages()}
    found = {page: leaving for page, text in pages.items() if (leaving := links_that_leave(page, text))}
    assert found == {}


def test_the_check_bites():
    text = "[a](keys.md#x) [b](../deploy/compose.yaml) ![c](images/chat.png) [d](https://example.com/x) [e](gone.md)"
    assert links_that_leave("docs/api.md", text) == ["../deploy/compose.yaml", "gone.md"]
