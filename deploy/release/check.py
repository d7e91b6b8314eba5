"""Build a release and try it as its users get it: `make release-check`.

The wheel is built twice, and both have the same bytes. It is installed into an empty environment with the locked
versions of all that it needs, and there the command says its version, and a demo starts in an empty folder, answers
with a citation and stops. Beside the wheel stand the source archive, a list of all parts and a statement of the making.
All is in `var/release`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.demo.children import Child, ChildSpec
from deploy.demo.plan import ROOT
from deploy.release.provenance import sha256_of, state_provenance
from shared.version import VERSION

RELEASE = ROOT / "var" / "release"
_TOOLS = ROOT / "var" / "release-environment" / "bin"
_LOCK = ROOT / "requirements" / "run.txt"
_START_SECONDS = 240
_STOP_SECONDS = 20
_QUESTION = "How soon must a page be acknowledged?"
_PORTS = ("BACKEND_PORT", "CHAT_SHELL_GRPC_PORT", "CHAT_SHELL_HTTP_PORT")
_FIRST_PORT = 18_400


class NotFit(RuntimeError):
    """The release is not what it has to be."""


def main() -> int:
    """Build and try it; returns the exit code."""
    try:
        made = build_twice(RELEASE)
        with tempfile.TemporaryDirectory(prefix="ballast-release-") as scratch:
            python = install(made[0], Path(scratch))
            list_parts(python)
            try_command(python.parent)
            try_demo(python.parent, Path(scratch))
        write_statement(made)
    except (NotFit, subprocess.CalledProcessError) as fault:
        print(f"The release is not fit: {fault}", file=sys.stderr)
        return 1
    for file in sorted(RELEASE.iterdir()):
        print(f"{sha256_of(file)}  {os.path.relpath(file)}")
    return 0


def build_twice(folder: Path) -> tuple[Path, Path]:
    """Build wheel and source archive, and see that a second build has the same bytes; return both."""
    shutil.rmtree(folder, ignore_errors=True)
    first = _build(folder)
    with tempfile.TemporaryDirectory(prefix="ballast-build-") as second:
        for file, again in zip(first, _build(Path(second)), strict=True):
            if sha256_of(file) != sha256_of(again):
                raise NotFit(f"two builds of {file.name} differ")
    return first


def _build(folder: Path) -> tuple[Path, Path]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": _of_revision("%ct")}
    command = (str(_TOOLS / "hatchling"), "build", "-t", "sdist", "-t", "wheel", "-d", str(folder))
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, archive


def install(wheel: Path, scratch: Path) -> Path:
    """Install the wheel into a new environment, with the locked versions; return its interpreter."""
    folder = scratch / "environment"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-deps")
    _run((str(python), "-m", "pip", "install", *quiet, "--require-hashes", "-r", str(_LOCK)), scratch)
    _run((str(python), "-m", "pip", "install", *quiet, str(wheel)), scratch)
    _run((str(python), "-m", "pip", "check"), scratch)
    return python


def list_parts(python: Path) -> None:
    """Write the list of all parts of an environment that has the release."""
    file = RELEASE / f"ballast-{VERSION}.cdx.json"
    _run((str(_TOOLS / "cyclonedx-py"), "environment", "--output-file", str(file), str(python)), ROOT)


def try_command(programs: Path) -> None:
    """See that the command says its version, and that uvx runs it where there is one."""
    said = _run((str(programs / "ballast"), "--version"), programs)
    if said.strip() != f"ballast {VERSION}":
        raise NotFit(f"ballast --version says {said!r}")
    if uvx := shutil.which("uvx"):
        (wheel,) = RELEASE.glob("*.whl")
        if _run((uvx, "--from", str(wheel), "ballast", "--version"), programs) != said:
            raise NotFit("uvx runs another ballast")
    else:
        print("uvx is not on this machine: that way is not tried")


def try_demo(programs: Path, scratch: Path) -> None:
    """Start a demo in an empty folder, ask it, and stop it."""
    folder = scratch / "somewhere"
    folder.mkdir()
    ports = {name: str(_FIRST_PORT + place) for place, name in enumerate(_PORTS)}
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(scratch), **ports}
    log = scratch / "demo.log"
    demo = Child(ChildSpec("ballast up", (str(programs / "ballast"), "up"), environment, folder, log))
    demo.start()
    try:
        demo.wait_until(lambda: f"Open http://127.0.0.1:{_FIRST_PORT}/" in demo.log(), _START_SECONDS)
        answer = _run((str(programs / "ballast"), "ask", _QUESTION), folder, environment)
        if "five minutes" not in answer or "on-call.md" not in answer:
            raise NotFit(f"the demo answers {answer!r}")
        demo.send(signal.SIGINT)
        demo.wait_until(lambda: demo.exit_code is not None, _STOP_SECONDS)
    finally:
        demo.kill()
    if demo.exit_code:
        raise NotFit(f"the demo ended with {demo.exit_code}: {demo.log_tail()}")


def write_statement(made: Sequence[Path]) -> None:
    """Write who made what of what."""
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    statement = state_provenance(made, locks, _of_revision("%H"), _of_revision("%cI"))
    file = RELEASE / f"ballast-{VERSION}.intoto.json"
    file.write_text(json.dumps(statement, indent=1) + "\n", encoding="utf-8")


def _of_revision(what: str) -> str:
    return _run(("git", "log", "-1", f"--format={what}"), ROOT).strip()


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        raise NotFit(f"{' '.join(command[:3])} … ends with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
