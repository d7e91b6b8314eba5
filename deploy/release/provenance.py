"""What a release says of its making: an in-toto statement in SLSA's form, which whoever has a key may sign."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

_STATEMENT = "https://in-toto.io/Statement/v1"
_PROVENANCE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "make release-check"


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def state_provenance(made: Sequence[Path], locks: Sequence[Path], revision: str, when: str) -> Mapping[str, object]:
    """Return the statement: which files were made, of which revision, with which locked parts.

    `when` is the time of the revision, as RFC 3339 has it: a statement of the same revision has the same bytes.
    """
    return {
        "_type": _STATEMENT,
        "subject": [{"name": file.name, "digest": {"sha256": sha256_of(file)}} for file in made],
        "predicateType": _PROVENANCE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"revision": revision},
                "resolvedDependencies": [{"name": lock.name, "digest": {"sha256": sha256_of(lock)}} for lock in locks],
            },
            "runDetails": {"builder": {"id": BUILD_TYPE}, "metadata": {"startedOn": when}},
        },
    }
