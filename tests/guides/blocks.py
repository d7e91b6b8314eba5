"""The command blocks of the documentation, and why some of them cannot be run by a test.

A block that is not run has a line right above it: `<!-- not run: needs-a-cluster -->`. One that is run may say what it
prints: the words behind `# prints ` at the end of one of its lines stand in its output as a line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from deploy.site.pages import list_written_pages
from tests.house.sources import ROOT

_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>\S+)(?: (?P<test>\S+))? -->\n)?"
    r"```(?P<kind>sh|bash|python)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_PRINTS = re.compile(r"# prints (.+)$", re.MULTILINE)
_SAVED_AS = re.compile(r"# (var/[\w./-]+)\n")


class Reason(StrEnum):
    """Why no test runs a block of a page."""

    NEEDS_A_CLUSTER = "needs-a-cluster"
    NEEDS_DOCKER = "needs-docker"
    NEEDS_A_PROVIDER_KEY = "needs-a-provider-key"
    INSTALLS_PACKAGES = "installs-packages"
    STARTS_THE_PRODUCT = "starts-the-product"
    TAKES_MINUTES = "takes-minutes"
    RUN_BY_ANOTHER_TEST = "run-by-another-test"
    """Which one stands behind it, and names the page."""


MOST_NOT_RUN = {
    Reason.NEEDS_A_CLUSTER: 5,
    Reason.NEEDS_DOCKER: 2,
    Reason.NEEDS_A_PROVIDER_KEY: 3,
    Reason.INSTALLS_PACKAGES: 27,
    Reason.STARTS_THE_PRODUCT: 7,
    Reason.TAKES_MINUTES: 6,
    Reason.RUN_BY_ANOTHER_TEST: 24,
}
"""How many blocks may be left out for each reason: one more is a decision, and not an oversight."""


@dataclass(frozen=True)
class Block:
    """A block of commands of a page, at the line of its fence."""

    page: str
    line: int
    kind: str
    code: str
    reason: Reason | None
    other_test: str

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.page}:{self.line}"

    @property
    def prints(self) -> list[str]:
        """The lines that it says it prints."""
        return _PRINTS.findall(self.code)

    @property
    def saved_as(self) -> str:
        """Where a reader saves it before the next block, as its first line says; empty for what is run by itself."""
        found = _SAVED_AS.match(self.code)
        return found[1] if found else ""


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """Yield the blocks of a page in their order.

    Raises:
        ValueError: a block is left out for a reason that is none.
    """
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("kind")) + 1
        reason = Reason(found["reason"]) if found["reason"] else None
        yield Block(page, line, found["kind"], found["code"], reason, found["test"] or "")


def all_blocks() -> list[Block]:
    """Return the blocks of all pages of the site."""
    return [
        block for page in list_written_pages() for block in blocks_of(page, (ROOT / page).read_text(encoding="utf-8"))
    ]
