"""Every path of the repository that a document names exists, and so does the schema that it names."""

import re
from pathlib import Path

from backend.migrations.compatibility import newest_revision, oldest_code_for
from tests.house.sources import ROOT, tracked_files

_FOLDERS = "backend|chat_shell|shared|protos|deploy|docs|tests|requirements"
_PATH = re.compile(rf"(?<![\w/.-])((?:{_FOLDERS})/[\w./*<>{{}}-]*\w)|\]\(([^():#\s]+)[)#]")
_PATTERN = re.compile(r"[*<>{}]")


def named_paths(text: str) -> list[str]:
    """Return the paths that a text names; patterns and placeholders are none."""
    found = (path or link for path, link in _PATH.findall(text))
    return [path for path in found if not _PATTERN.search(path)]


def documents() -> list[Path]:
    """Return the documents of the project; what tests and the demo search in is none."""
    apart = (ROOT / "tests/leaks/corpus", ROOT / "deploy/demo/knowledge")
    return [path for path in tracked_files() if path.suffix == ".md" and not set(apart) & set(path.parents)]


def exists(path: str, document: Path) -> bool:
    return (ROOT / path).exists() or (document.parent / path).exists()


def test_every_path_in_a_document_exists():
    missing = [
        f"{document.relative_to(ROOT)}: {path}"
        for document in documents()
        for path in named_paths(document.read_text(encoding="utf-8"))
        if not exists(path, document)
    ]
    assert missing == []


def test_the_page_of_upgrades_names_the_newest_schema():
    page = (ROOT / "docs/upgrading.md").read_text(encoding="utf-8")
    newest = newest_revision()
    assert f"| {newest} | {oldest_code_for(newest)} |" in page
    assert f"has schema {newest}`" in page


def test_the_check_bites():
    assert named_paths("see `backend/turns/domain/planted.py`, [a](planted.md#b) and `tests/unit/<room>/`") == [
        "backend/turns/domain/planted.py",
        "planted.md",
    ]
    assert not exists("backend/turns/domain/planted.py", ROOT / "README.md")
    assert exists("backend/turns", ROOT / "README.md")
