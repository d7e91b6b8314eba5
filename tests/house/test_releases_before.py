"""Code that is here for a release before alone is named in one place, from which it can be taken out."""

import re

from backend.migrations.compatibility import FOR_A_RELEASE_BEFORE
from tests.house.sources import Source, parse, sources

_SPEAKS_OF_ONE = re.compile(r"\b(?:the|that) (?:release before|first release)\b")
_BREAK_IN_COMMENT = re.compile(r"\s*\n[\s#]*")
_APART = ("backend/migrations/",)
"""What brings databases of all releases up to date."""


def speaks_of_one(file: Source) -> bool:
    return _SPEAKS_OF_ONE.search(_BREAK_IN_COMMENT.sub(" ", file.text)) is not None


def product() -> dict[str, Source]:
    files = sources("backend", "chat_shell", "shared", "cli")
    return {file.name: file for file in files if not file.name.startswith(_APART)}


def test_what_is_here_for_a_release_before_is_named() -> None:
    assert [name for name, file in product().items() if speaks_of_one(file) and name not in FOR_A_RELEASE_BEFORE] == []


def test_what_is_named_is_there() -> None:
    files = product()
    assert [name for name in FOR_A_RELEASE_BEFORE if name not in files] == []
    missing = {
        f"{name}: {needed}"
        for name, each in FOR_A_RELEASE_BEFORE.items()
        for needed in each
        if not re.search(rf"\b{needed}\b", files[name].text)
    }
    assert missing == set()


def test_the_check_bites() -> None:
    for text in ("# the release\n# before refuses it", '"""Rows of the first release."""', "# for the release before"):
        assert speaks_of_one(parse("backend/a.py", text)), text
    assert not speaks_of_one(parse("backend/a.py", "# an earlier release of a summary, before the next"))
