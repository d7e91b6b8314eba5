"""Kept releases are reused only for the gate that made them."""

from hashlib import sha256
from pathlib import Path

from chat_shell.sealed import gate
from chat_shell.sealed.gate import GATE_VERSION
from shared import plain_text

JUDGING = {"3": "1f552a06657281f4", "4": "1912b7f344e2ddbe"}
"""The digest of all that judges, by version: whoever changes a check, a list or a threshold adds a version."""


def test_the_version_goes_up_with_every_change_of_what_judges():
    packages = [Path(str(package.__file__)).parent for package in (gate, plain_text)]
    files = sorted(file for package in packages for file in package.rglob("*") if file.suffix in (".py", ".txt"))
    lines = (line for file in files for line in file.read_text(encoding="utf-8").splitlines())
    newest, digest = list(JUDGING.items())[-1]
    assert (GATE_VERSION, sha256("\n".join(lines).encode()).hexdigest()[:16]) == (newest, digest)
    assert len({*JUDGING.values()}) == len(JUDGING)
