"""No tracked file names a registry, a machine or a private place; the locks agree with each other."""

import re
import tomllib

import pytest

from tests.house.sources import ROOT, tracked_files, tracked_names

# put together here, so that this file does not hold what it forbids
_FORBIDDEN = [
    "|".join(("pypi" + r"\.org", "python" + r"hosted\.org", r"(?<!emit-)index" + "-url")),
    "|".join(("registry" + r"\.npmjs", "artifactory", r"\bnexus\.", "gh" + r"cr\.io", r"\bquay" + r"\.io")),
    r"(?<![\w.])/(?:work|root|Users|home/\w+)/",
]
_ALLOWED_FILES = frozenset({"tests/house/test_tracked_text.py"})
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)", re.MULTILINE)


def forbidden_words(text: str) -> list[str]:
    return [found.group() for pattern in _FORBIDDEN for found in re.finditer(pattern, text)]


def pins(lock_name: str) -> set[tuple[str, str]]:
    return set(_PIN.findall((ROOT / "requirements" / lock_name).read_text(encoding="utf-8")))


def test_no_file_names_a_registry_or_a_machine():
    found = {
        f"{path.relative_to(ROOT)}: {word}"
        for path in tracked_files()
        if str(path.relative_to(ROOT)) not in _ALLOWED_FILES
        for word in forbidden_words(path.read_text(encoding="utf-8", errors="replace"))
    }
    assert found == set()


def test_a_shell_takes_the_names_of_files_as_they_are():
    assert [name for name in tracked_names() or () if not re.fullmatch(r"[\w./@+-]+", name)] == []


def test_nothing_is_tracked_that_is_ignored():
    """Git puts tracked files in the place of ignored ones without a word: of an environment that tests run in, too."""
    assert not tracked_names("--cached", "--ignored", "--exclude-standard")


def test_the_check_bites():
    for text in ("--index" + "-url https://x", "see /work" + "/main", "https://py" + "pi.org/simple"):
        assert forbidden_words(text)
    harmless = "uv pip compile --no-emit-index-" + "url --universal; ~/work; /workspace/x; a/" + "work/b"
    assert not forbidden_words(harmless)


@pytest.mark.parametrize("lock_name", ["run.txt", "backend.txt", "chat-shell.txt"])
def test_what_runs_is_what_was_tested(lock_name: str):
    assert pins(lock_name)
    assert pins(lock_name) <= pins("dev.txt")


@pytest.mark.parametrize("lock_name", ["dev.txt", "run.txt", "backend.txt", "chat-shell.txt", "release.txt"])
def test_every_pin_has_a_hash_and_no_lock_has_an_address(lock_name: str):
    text = (ROOT / "requirements" / lock_name).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=[A-Za-z0-9])", text)[1:]
    assert [entry.partition(" ")[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in text


def declared_in(group: str) -> set[str]:
    """Return what a group of pyproject.toml needs, with the groups that it includes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    entries: list[str | dict[str, str]] = project["dependency-groups"][group]
    own = {entry for entry in entries if isinstance(entry, str)}
    return own.union(*(declared_in(entry["include-group"]) for entry in entries if isinstance(entry, dict)))


@pytest.mark.parametrize("group", ["run", "backend", "chat-shell"])
def test_what_is_declared_is_locked(group: str):
    names = {re.split(r"[\[<>=;~! ]", requirement)[0].lower() for requirement in declared_in(group)}
    assert names <= {name.lower() for name, _ in pins(f"{group}.txt")}


def test_a_wheel_needs_what_both_services_and_the_command_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["dependencies"]) == declared_in("run")
