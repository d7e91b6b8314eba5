"""The demo of this folder: its addresses and keys, which nobody has to paste, and its start."""

import os
import shlex
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from cli.advice import ExitCode
from cli.failures import CommandFailed
from cli.running import with_our_packages
from shared.outgoing import LOOPBACK_HOSTS

FILE = Path("var", "demo", "env")
TOLD_BY_DEMO = ("BACKEND_URL", "METRICS_URL", "USER_KEY", "RESTRICTED_KEY", "MODEL_URL")
"""What a demo tells besides the variables of this command."""

_OURS = ("BALLAST_URL", "BALLAST_KEY", "BALLAST_BASE")
_RUN = "deploy.demo.run"


def with_demo(environ: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    """Return the environment, completed from the folder's demo where it names no backend.

    What is set stands, also where it is empty: nobody acts with a key that they did not mean.
    """
    named = {name for name in _OURS if name in environ or f"{name}_FILE" in environ}
    if "BALLAST_URL" in named:
        return environ
    return {**{name: value for name, value in read_demo(folder).items() if name not in named}, **environ}


def read_demo(folder: Path) -> dict[str, str]:
    """Return what a demo that was started in the folder has written there; nothing where none was.

    Somebody else's file is passed over, and one that leads away from this machine: what a command uploads goes there.
    """
    file = folder / FILE
    try:
        kept = file.stat()
        words = shlex.split(file.read_text(encoding="utf-8"))
        variables = dict(word.split("=", 1) for word in words if "=" in word)
        is_here = urlsplit(variables.get("BALLAST_URL", "")).hostname in LOOPBACK_HOSTS
    except (OSError, ValueError):
        return {}
    is_ours = kept.st_uid == os.getuid() and not kept.st_mode & 0o077
    return variables if is_ours and is_here else {}


def become_demo(environ: Mapping[str, str], folder: Path) -> None:
    """Let the demo take the place of this process; its data goes to `var` in the folder.

    Raises:
        CommandFailed: the services are not installed here.
    """
    if find_spec("deploy") is None or find_spec(_RUN) is None:
        message = "The services are not installed here, only this command."
        raise CommandFailed(message, ExitCode.WRONG_USE, "install ballast whole, or use `make run` in a clone")
    command = (sys.executable, "-m", _RUN, str(folder / "var"))
    os.execve(sys.executable, command, with_our_packages(environ))  # noqa: S606  # no shell is wanted
