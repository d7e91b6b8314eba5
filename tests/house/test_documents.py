"""Every path of the repository that a document names exists, and so does the schema that it names.

Each package has a README of one page, which names files by their place in the package; AGENTS.md names the packages.
"""

import re
from pathlib import Path

from backend.migrations.compatibility import newest_revision, oldest_code_for
from tests.house.sources import ROOT, tracked_files

_FOLDERS = "backend|chat_shell|shared|protos|cli|deploy|docs|tests|requirements"
_PATH = re.compile(rf"(?<![\w/.-])((?:{_FOLDERS})/[\w./*<>{{}}-]*\w)|\]\(([^():#\s]+)[)#]")
_PATTERN = re.compile(r"[*<>{}]")
_FILE = re.compile(r"`([\w./-]+\.(?:py|pyi|proto|toml|txt|ts|css|json|md))`")
_PACKAGE = re.compile(r"((?:backend|chat_shell|shared)/\w+|shared|cli|protos|tests)/__init__\.py|(shared)/\w+\.py")
_NAME_IN_FILE = re.compile(r"`(\w+)` in `([\w./-]+\.py)`")
_FILE_WITH_NAMES = re.compile(r"`([\w./-]+\.py)` \(((?:`\w+`(?:, )?)+)\)")
_WORD = re.compile(r"\w+")
_MAP_LINES, _README_LINES = 120, 60


def named_paths(text: str) -> list[str]:
    """Return the paths that a text names; patterns and placeholders are none."""
    found = (path or link for path, link in _PATH.findall(text))
    return [path for path in found if not _PATTERN.search(path)]


def misplaced_names(text: str, readme: Path) -> list[str]:
    """Return names that are not in the file that a README gives: "`name` in `file`", "`file` (`name`, …)"."""
    listed = ((name, path) for path, names in _FILE_WITH_NAMES.findall(text) for name in _WORD.findall(names))
    return [
        f"{name} in {path}"
        for name, path in (*_NAME_IN_FILE.findall(text), *listed)
        if name not in _text_of(path, readme)
    ]


def _text_of(path: str, readme: Path) -> str:
    places = (readme.parent / path, ROOT / path)
    return next((place.read_text(encoding="utf-8") for place in places if place.is_file()), "")


def packages() -> list[str]:
    """Return the packages of the repository, each of which has a README."""
    found = (_PACKAGE.fullmatch(path.relative_to(ROOT).as_posix()) for path in tracked_files())
    return sorted({match[1] or match[2] for match in found if match})


def faults_of_readme(text: str, readme: Path) -> list[str]:
    """Return the files that do not exist though a README names them, and its length where it is no page."""
    missing = [path for path in _FILE.findall(text) if not exists(path, readme)]
    count = len(text.splitlines())
    return [*missing, f"{count} lines"] if count > _README_LINES else missing


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


def test_each_package_has_a_readme_of_one_page_whose_files_exist():
    readmes = {package: ROOT / package / "README.md" for package in packages()}
    assert [package for package, readme in readmes.items() if not readme.is_file()] == []
    texts = {readme: readme.read_text(encoding="utf-8") for readme in readmes.values()}
    assert {str(at): faults for at, text in texts.items() if (faults := faults_of_readme(text, at))} == {}
    assert {str(at): names for at, text in texts.items() if (names := misplaced_names(text, at))} == {}


def test_the_map_is_short_and_names_each_package():
    text = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= _MAP_LINES
    assert [package for package in packages() if f"`{package}`" not in text] == []


def test_the_page_of_upgrades_names_the_newest_schema():
    page = (ROOT / "docs/upgrading.md").read_text(encoding="utf-8")
    newest = newest_revision()
    assert f"| {newest} | {oldest_code_for(newest)} |" in page
    assert f"has schema {newest}`" in page


def test_the_check_bites():
    assert named_paths("see `backend/turns/domain/planted.py`, [a](planted.md#b) and `tests/unit/<package>/`") == [
        "backend/turns/domain/planted.py",
        "planted.md",
    ]
    assert not exists("backend/turns/domain/planted.py", ROOT / "README.md")
    assert exists("backend/turns", ROOT / "README.md")
    readme = ROOT / "backend/turns/README.md"
    assert faults_of_readme("`services/planted.py`, `wiring.py`" + "\n" * _README_LINES, readme) == [
        "services/planted.py"
    ]
    assert misplaced_names("`PlantedTurn` in `wiring.py`; `wiring.py` (`turn_services`, `planted`)", readme) == [
        "PlantedTurn in wiring.py",
        "planted in wiring.py",
    ]
    assert faults_of_readme("a\n" * (_README_LINES + 1), readme) == [f"{_README_LINES + 1} lines"]
    assert {"backend/turns", "chat_shell/sealed", "shared/wire", "shared", "cli", "protos", "tests"} <= {*packages()}
