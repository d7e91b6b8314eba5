"""The site of the documentation: its API reference holds all of the API, and no page fetches from elsewhere."""

import re
from pathlib import Path
from typing import Any

import pytest

from deploy.site.build import api_document, find_fetched_from_elsewhere
from deploy.site.pages import list_named_reference_pages
from deploy.site.reference import OBJECTS_PAGE, reference_pages, slug

_LINK = re.compile(r"\]\(([\w.-]+)#([\w-]+)\)")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return api_document()


@pytest.fixture(scope="module")
def pages(document: dict[str, Any]) -> dict[str, str]:
    return reference_pages(document)


def test_navigation_names_every_page_of_the_reference(pages: dict[str, str]) -> None:
    assert sorted(list_named_reference_pages()) == sorted(pages)


def test_every_operation_parameter_and_field_stands_in_the_reference(
    document: dict[str, Any], pages: dict[str, str]
) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            page = pages[f"{slug(operation['tags'][0])}.md"]
            part = page.split(f"\n\n`{method.upper()} {path}`\n\n")[1].split("\n\n## ")[0]
            assert [each for each in operation.get("parameters", ()) if f"| `{each['name']}` |" not in part] == []
    for name, schema in document["components"]["schemas"].items():
        part = pages[OBJECTS_PAGE].split(f"\n\n## {name}\n\n")[1].split("\n\n## ")[0]
        assert [field for field in schema.get("properties", {}) if f"\n| `{field}`" not in part] == []


def test_every_link_of_the_reference_leads_to_a_heading(pages: dict[str, str]) -> None:
    headings = {name: {slug(found) for found in _HEADING.findall(text)} for name, text in pages.items()}
    links = [link for text in pages.values() for link in _LINK.findall(text)]
    assert links
    assert [(page, anchor) for page, anchor in links if anchor not in headings[page]] == []


def test_a_row_of_a_table_stays_one_row() -> None:
    schema = {"properties": {"size": {"type": "string", "description": "One | two.\nThree."}}}
    shown = reference_pages({"paths": {}, "components": {"schemas": {"Thing": schema}}})[OBJECTS_PAGE]
    assert "| `size` | string | One \\| two. Three. |" in shown


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn.example.com/x.js">',
        '<link rel="stylesheet" href=//cdn.example.com/x.css>',
        "<img alt=x src=http://example.com/x.png>",
    ],
)
def test_what_a_page_fetches_from_elsewhere_is_found(tag: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f'<a href="https://example.com/">a</a><img src="x.png">{tag}', encoding="utf-8")
    assert len(list(find_fetched_from_elsewhere(tmp_path))) == 1
