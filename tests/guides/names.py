"""What a block names exists: make targets, settings with sound values, modules, commands and options of `ballast`."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec

import click

from backend.settings import Settings as BackendSettings
from chat_shell.settings import Settings as ChatShellSettings
from cli.app import ballast
from shared.environment import ServiceSettings, WrongSetting, read_settings
from shared.setting_names import OF_CALLERS
from tests.guides.blocks import Block
from tests.house.sources import ROOT

_SERVICES: tuple[type[ServiceSettings], ...] = (BackendSettings, ChatShellSettings)
_SETTINGS = {f"{name}{end}" for settings in _SERVICES for name in settings.variables() for end in ("", "_FILE")}
_NEEDED = {"SERVICE_TOKEN": "token-of-the-tests", "BACKEND_SECRET": "secret-of-the-tests"}
_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
_MAKE = re.compile(r"(?:^|[;&|]|\s)make ([a-z-]+)")
_MODULE = re.compile(r"python3? -m ([\w.]+)")
_BALLAST = re.compile(r"(?:^|[;&|(] *|bin/)ballast ([^|;&\n)]*)", re.MULTILINE)
_ASSIGNED = re.compile(r"\b((?:BACKEND|CHAT_SHELL)_[A-Z_]+|SERVICE_TOKEN)=")
_ASSIGNMENTS = re.compile(r"(?:export )?(?:[A-Z_]+=(?:'[^']*'|\S*) ?)+\s*(?:#.*)?")


def wrong_names(block: Block) -> list[str]:
    """Return what is wrong in a block that can be seen without running it; nothing where all is well."""
    if block.kind == "python":
        return list(_wrong_python(block))
    return [*_wrong_syntax(block), *_wrong_in_shell(block.code.replace("\\\n", " ")), *_wrong_values(block.code)]


def _wrong_python(block: Block) -> Iterator[str]:
    try:
        compile(block.code, block.place, "exec")
    except SyntaxError as error:
        yield str(error)


def _wrong_syntax(block: Block) -> Iterator[str]:
    done = subprocess.run([block.kind, "-n"], input=block.code, capture_output=True, text=True, check=False)
    if done.returncode:
        yield done.stderr.strip()


def _wrong_in_shell(code: str) -> Iterator[str]:
    commands = re.sub(r"(?m)(?:^|\s)#.*$", "", code)
    yield from (f"make {target}" for target in _MAKE.findall(commands) if target not in _TARGETS)
    yield from (f"python -m {module}" for module in _MODULE.findall(commands) if not _is_module(module))
    known = _SETTINGS | OF_CALLERS
    yield from (f"{name}=" for name in _ASSIGNED.findall(commands) if name not in known)
    for words in _BALLAST.findall(commands):
        yield from _wrong_words(shlex.split(words.replace("'", "").replace('"', "")))


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _wrong_words(words: list[str]) -> Iterator[str]:
    """Yield the commands and options of `ballast` that there are not."""
    command: click.Command = ballast
    for word in words:
        if word.startswith("-"):
            if not any(word.partition("=")[0] in parameter.opts for parameter in command.params):
                yield f"ballast … {command.name} {word}"
        elif isinstance(command, click.Group):
            if word not in command.commands:
                yield f"ballast … {command.name} {word}"
                return
            command = command.commands[word]


def _wrong_values(code: str) -> Iterator[str]:
    """Yield why a service would not start with the settings of a block that sets nothing else."""
    lines = code.splitlines()
    if not all(_ASSIGNMENTS.fullmatch(line) for line in lines):
        return
    pairs = (word.partition("=") for line in lines for word in shlex.split(line, comments=True) if "=" in word)
    given = _NEEDED | {name: value for name, _, value in pairs}
    for settings in _SERVICES:
        try:
            read_settings(settings, given)
        except WrongSetting as wrong:
            yield str(wrong)
