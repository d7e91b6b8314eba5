"""The statement of a release names what was made, by its content."""

import json
from pathlib import Path

from deploy.release.provenance import state_provenance

EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_statement_has_the_digests_of_files_and_locks(tmp_path: Path) -> None:
    wheel, lock = tmp_path / "ballast.whl", tmp_path / "run.txt"
    wheel.touch()
    lock.write_text("httpx2==2.10", encoding="utf-8")
    stated = json.loads(json.dumps(state_provenance([wheel], [lock], "abc", "2026-11-28T00:00:00Z")))
    assert stated["subject"] == [{"name": "ballast.whl", "digest": {"sha256": EMPTY_SHA256}}]
    build = stated["predicate"]["buildDefinition"]
    assert build["externalParameters"] == {"revision": "abc"}
    (dependency,) = build["resolvedDependencies"]
    assert dependency["name"] == "run.txt"
    assert dependency["digest"]["sha256"] != EMPTY_SHA256
