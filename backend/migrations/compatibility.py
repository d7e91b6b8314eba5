"""The table of releases and schemas: which code may run on which schema.

A revision either *expands*: code of the release before reads and writes the schema as if nothing had happened. Or it
*contracts*: it takes away or changes what earlier code uses. Only the contractions are listed, and a test refuses a
revision that is not listed and takes something away.
"""

from pathlib import Path

CONTRACTIONS = ("0009",)
"""Revisions that earlier code cannot run on. The first one stands for itself and all before it.

A release contracts only what no code of the release before it uses any more (docs/adr/0017).
"""

_VERSIONS = Path(__file__).parent / "versions"


def all_revisions() -> tuple[str, ...]:
    """Return the revisions that this code knows, the oldest first: the numbers with which names of scripts begin."""
    return tuple(sorted(path.stem.partition("_")[0] for path in _VERSIONS.glob("[0-9]*.py")))


def newest_revision() -> str:
    """Return the revision of this code's own schema."""
    return all_revisions()[-1]


def oldest_code_for(revision: str) -> str:
    """Return the oldest revision whose code may run on a schema of this revision."""
    return max((each for each in CONTRACTIONS if each <= revision), default=revision)
