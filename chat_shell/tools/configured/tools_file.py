"""The operator's list of tool servers and their folder of skills, which is checked before anything starts."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError, model_validator

from chat_shell.tools.domain.definitions import MAX_NAME_CHARACTERS
from chat_shell.tools.domain.server_entry import (
    DEFAULT_MAX_RESULT_BYTES,
    DEFAULT_TIMEOUT_SECONDS,
    LocalServer,
    ServerEntry,
    WebServer,
)
from shared.environment import HeaderSecret, WebAddress
from shared.models.invalid_fields import refusal_of
from shared.models.served_tools import SKILLS_SERVER, model_name
from shared.models.values import JsonValue

MAX_SERVERS = 64
_HEADER_SECRET: TypeAdapter[SecretStr] = TypeAdapter(HeaderSecret)


class ToolsFileError(ValueError):
    """The tools file is wrong; the message is one line that names the file and the place."""


class WantedSkills(BaseModel):
    """The operator's folder of skills."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path
    accepts_restricted: bool = False


class ToolsFile(NamedTuple):
    """What the file says, with the values of the variables that it names."""

    servers: tuple[ServerEntry, ...] = ()
    skills: WantedSkills | None = None


class _Server(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9](_?[A-Za-z0-9-])*$", max_length=32)]
    address: WebAddress | None = None
    headers: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")], str] = Field(default={})
    command: Annotated[str, Field(min_length=1)] | None = None
    arguments: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    tools: tuple[Annotated[str, Field(min_length=1)], ...] | None = None
    accepts_restricted: bool = False
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = DEFAULT_TIMEOUT_SECONDS
    max_result_bytes: Annotated[int, Field(ge=1_000, le=1_000_000)] = DEFAULT_MAX_RESULT_BYTES

    @model_validator(mode="after")
    def _is_reached_in_one_way(self) -> "_Server":
        if (self.address is None) == (self.command is None):
            raise ValueError("must have either an address or a command")
        if self.address is None and self.headers:
            raise ValueError("headers: only a server with an address has them")
        if self.command is None and (self.arguments or self.environment):
            raise ValueError("arguments, environment: only a server with a command has them")
        return self

    @property
    def variables(self) -> Iterator[tuple[str, str]]:
        """The places in the entry that name variables, with the names."""
        yield from ((f"headers.{header}", name) for header, name in self.headers.items())
        yield from ((f"environment[{place}]", name) for place, name in enumerate(self.environment))


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    servers: Annotated[list[_Server], Field(max_length=MAX_SERVERS)] = Field(default=[])
    skills: WantedSkills | None = None


def read_tools_file(path: Path, environment: Mapping[str, str]) -> ToolsFile:
    """Read the YAML file; headers and variables for commands are taken from `environment`.

    Raises:
        ToolsFileError: the file is unreadable, a field is wrong, a name stands twice or is too long with that of a
            tool, or a variable is not set.
    """
    parsed = _validate(path, _parse(path))
    _check_names(path, parsed.servers)
    servers = tuple(_entry(path, place, server, environment) for place, server in enumerate(parsed.servers))
    return ToolsFile(servers=servers, skills=parsed.skills)


def tool_variables(path: Path) -> frozenset[str]:
    """Return the names of the variables that a tools file names; none of a file that is wrong."""
    try:
        servers = _validate(path, _parse(path)).servers
    except ToolsFileError:
        return frozenset()
    return frozenset(name for server in servers for _, name in server.variables)


def _parse(path: Path) -> JsonValue:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ToolsFileError(f"{path}: cannot be read ({os.strerror(error.errno or 0)})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f", line {line + 1}"
        raise ToolsFileError(f"{path}{where}: is not YAML") from error


def _validate(path: Path, parsed: JsonValue) -> _File:
    try:
        return _File.model_validate(parsed or {})
    except ValidationError as error:
        refusal = refusal_of(error, whole="file")
        raise ToolsFileError(f"{path}: {refusal.message}") from error


def _check_names(path: Path, servers: list[_Server]) -> None:
    taken: dict[str, str] = {}
    for place, server in enumerate(servers):
        where = f"{path}: servers[{place}]"
        if server.name == SKILLS_SERVER:
            raise ToolsFileError(f"{where}.name: {SKILLS_SERVER!r} is taken by the skills; use another one")
        if server.name in taken:
            raise ToolsFileError(f"{where}.name: {server.name!r} stands twice")
        taken[server.name] = where
        names: set[str] = set()
        for number, tool in enumerate(server.tools or ()):
            name = model_name(server.name, tool)
            if name in names:
                raise ToolsFileError(f"{where}.tools[{number}]: {name!r} stands for two tools")
            if len(name) > MAX_NAME_CHARACTERS:
                problem = f"{name!r} has more than {MAX_NAME_CHARACTERS} characters; shorten the server's name"
                raise ToolsFileError(f"{where}.tools[{number}]: {problem}")
            names.add(name)


def _entry(path: Path, place: int, server: _Server, environment: Mapping[str, str]) -> ServerEntry:
    values = {where: _value(f"{path}: servers[{place}].{where}", name, environment) for where, name in server.variables}
    if server.address is not None:
        headers = {header: values[f"headers.{header}"] for header in server.headers}
        link = WebServer(address=server.address, headers=headers)
    else:
        given = {name: values[f"environment[{number}]"] for number, name in enumerate(server.environment)}
        link = LocalServer(command=server.command or "", arguments=server.arguments, environment=given)
    return ServerEntry(
        name=server.name,
        link=link,
        tools=server.tools,
        accepts_restricted=server.accepts_restricted,
        timeout_seconds=server.timeout_seconds,
        max_result_bytes=server.max_result_bytes,
    )


def _value(where: str, name: str, environment: Mapping[str, str]) -> SecretStr:
    value = environment.get(name, "").strip()
    if not value:
        raise ToolsFileError(f"{where}: {name} is not set")
    try:
        return _HEADER_SECRET.validate_python(SecretStr(value))
    except ValidationError:
        # The validation error would repeat the value, so it is neither quoted nor chained.
        raise ToolsFileError(f"{where}: {name} holds characters that no header can carry") from None
