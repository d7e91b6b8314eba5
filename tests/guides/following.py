"""Follow a page as a reader does: one shell and one Python for all of its blocks, in a folder like a clone."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO

from deploy.demo.announcement import export_variables
from deploy.demo.environment_file import ENVIRONMENT, write_environment
from requirements.install import write_launchers
from tests.console.running import DEMO_MODEL, Running
from tests.guides.blocks import Block
from tests.house.sources import ROOT

_DONE = "the block has ended"
_PYTHON = f"""
import sys
names = {{"__name__": "__main__"}}
for path in map(str.strip, sys.stdin):
    exec(compile(open(path, encoding="utf-8").read(), path, "exec"), names)
    print({_DONE!r}, flush=True)
"""
_NOT_LINKED = (".git", ".venv", "var")
# a request that is refused ends no shell line behind a pipe: it is noted
_CURL = """\
#!/bin/sh
{curl} --fail-with-body "$@" || {{ echo "curl $*" >> "$GUIDE_REFUSED"; exit 22; }}
"""


class Broken(AssertionError):
    """A block did not do what its page says."""


class Interpreter:
    """A shell or a Python that runs one file after another and keeps what they set."""

    def __init__(self, command: list[str], order: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._order = order
        self._popen = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, file: Path) -> tuple[list[str], bool]:
        """Run a file; return the lines of its output, and whether it came to its end."""
        lines: list[str] = []
        with_output: IO[str] | None = self._popen.stdout
        assert self._popen.stdin is not None
        assert with_output is not None
        self._popen.stdin.write(self._order.format(file=file))
        self._popen.stdin.flush()
        for line in with_output:
            if line.rstrip("\n").endswith(_DONE):
                return [*lines, line.rstrip("\n").removesuffix(_DONE)], True
            lines.append(line.rstrip("\n"))
        return lines, False

    def close(self) -> None:
        """End it."""
        with self._popen:
            self._popen.kill()


@contextmanager
def reading(running: Running, folder: Path, given: Mapping[str, str] | None = None) -> Generator["Reader"]:
    """Lend somebody who reads one page, with `given` variables; end the shell and Python with the block."""
    reader = Reader(running, folder, given or {})
    try:
        yield reader
    finally:
        reader.close()


class Reader:
    """Somebody in a clone of the repository in which `make run` runs, whose shell has its variables."""

    def __init__(self, running: Running, folder: Path, given: Mapping[str, str]) -> None:
        self._folder = folder
        self._refused = folder / "refused"
        _lay_out_clone(running, folder)
        machine = {"PATH": os.environ["PATH"], **given, "GUIDE_REFUSED": str(self._refused)}
        environment = _printed_by_make_run(running) | _of_the_clone(folder, machine)
        shell = Interpreter(["bash", "-eu"], f". {{file}} < /dev/null\necho '{_DONE}'\n", folder, environment)
        python = Interpreter([sys.executable, "-c", _PYTHON], "{file}\n", folder, environment)
        self._interpreters = MappingProxyType({"sh": shell, "bash": shell, "python": python})

    def follow(self, block: Block) -> None:
        """Do what a block says, and look whether it prints what it promises.

        Raises:
            Broken: it ended with an error, a request was refused, or a promised line is missing.
        """
        if block.saved_as:
            (self._folder / block.saved_as).write_text(block.code, encoding="utf-8")
            return
        file = self._folder / "var" / f"block-{block.line}"
        file.write_text(block.code, encoding="utf-8")
        lines, has_ended = self._interpreters[block.kind].run(file)
        refused = self._refused.read_text(encoding="utf-8") if self._refused.exists() else ""
        missing = [line for line in block.prints if line not in lines]
        if not has_ended or refused or missing:
            told = "\n".join(lines)
            raise Broken(f"{block.place}\n{block.code}\n{told}\nrefused: {refused}\nmissing: {missing}")

    def close(self) -> None:
        """End what runs for the reader."""
        for interpreter in {*self._interpreters.values()}:
            interpreter.close()


def _lay_out_clone(running: Running, folder: Path) -> None:
    """Make a folder that looks like the repository after `make run`; what is tracked is linked."""
    for path in ROOT.iterdir():
        if path.name not in _NOT_LINKED:
            (folder / path.name).symlink_to(path)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    write_launchers(ROOT, Path(sys.executable), programs)
    _write_program(programs / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    _write_program(programs / "curl", _CURL.format(curl=shutil.which("curl")))
    kept = folder / "var" / "demo"
    kept.mkdir(parents=True)
    (kept / "backend_admin_key").write_text(running.admin_key, encoding="ascii")
    write_environment(kept / ENVIRONMENT, _printed_by_make_run(running))
    (kept / "chat_shell.log").symlink_to(running.pair.chat_shell.spec.log_path)
    (folder / "your-folder").mkdir()
    (folder / "your-folder" / "kettle.md").write_text("# Kettle\n\nThe kettle is descaled each month.\n")


def _write_program(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


def _printed_by_make_run(running: Running) -> dict[str, str]:
    url, demo = running.pair.backend_url, running.demo
    of_client_pages = {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": demo.user_key,
        "MODEL": DEMO_MODEL,
        "KNOWLEDGE_BASE_ID": demo.handbook_id,
    }
    return export_variables(url, running.metrics_url, demo) | of_client_pages


def _of_the_clone(folder: Path, machine: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join([str(folder / ".venv" / "bin"), machine["PATH"]])
    home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(ROOT)}
    return {**machine, **home, "PATH": path}
