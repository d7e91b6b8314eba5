"""Skills in a folder of the operator: each a folder of its own with a file SKILL.md, whose front matter is YAML."""

import asyncio
import os
import stat
from pathlib import Path, PurePosixPath
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chat_shell.tools.services.skills import MAIN_FILE
from shared.models.invalid_fields import refusal_of
from shared.models.served_tools import SkillCard

MAX_SKILLS = 200
MAX_FILE_BYTES = 65_536
MAX_FRONT_MATTER_BYTES = 8_192

_FENCE = "---"


class SkillsError(ValueError):
    """A skill is wrong; the message is one line that names the file and the place."""


class _FrontMatter(BaseModel):
    """The fields that are used; a skill may have others, for other programs."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
    description: Annotated[str, Field(min_length=1, max_length=1_024)]


class SkillFolder:
    """Implements `Skills`; names and descriptions are read once, texts when they are asked for.

    Raises:
        SkillsError: the folder cannot be read, or a skill has no legible front matter, or a name stands twice.
    """

    def __init__(self, folder: Path, *, accepts_restricted: bool) -> None:
        self._folders: dict[str, Path] = {}
        cards: list[SkillCard] = []
        for path in _skill_files(folder):
            matter = _front_matter(path)
            if matter.name in self._folders:
                raise SkillsError(f"{path}: name: {matter.name!r} stands twice")
            self._folders[matter.name] = path.parent.resolve()
            line = " ".join(matter.description.split())
            cards.append(SkillCard(name=matter.name, description=line, accepts_restricted=accepts_restricted))
        self.cards = tuple(sorted(cards, key=lambda card: card.name))

    async def read(self, name: str, file: str) -> str | None:
        """Return the text of a file of a skill; None where there is none that may be read."""
        folder = self._folders.get(name)
        return await asyncio.to_thread(_text_in, folder, file) if folder is not None else None


def _skill_files(folder: Path) -> list[Path]:
    try:
        found = sorted(each / MAIN_FILE for each in folder.iterdir() if (each / MAIN_FILE).is_file())
    except OSError as error:
        raise SkillsError(f"{folder}: cannot be read ({os.strerror(error.errno or 0)})") from error
    if len(found) > MAX_SKILLS:
        raise SkillsError(f"{folder}: holds more than {MAX_SKILLS} skills")
    return found


def _front_matter(path: Path) -> _FrontMatter:
    text = _text_in(path.parent.resolve(), path.name)
    if text is None:
        raise SkillsError(f"{path}: is no text in UTF-8 of at most {MAX_FILE_BYTES:,} bytes")
    lines = text.splitlines()
    if not lines or lines[0].strip() != _FENCE or _FENCE not in (line.strip() for line in lines[1:]):
        raise SkillsError(f"{path}: does not begin with front matter between two lines of {_FENCE}")
    end = next(place for place, line in enumerate(lines[1:], start=1) if line.strip() == _FENCE)
    written = "\n".join(lines[1:end])
    if len(written.encode()) > MAX_FRONT_MATTER_BYTES:
        raise SkillsError(f"{path}: the front matter has more than {MAX_FRONT_MATTER_BYTES:,} bytes")
    try:
        return _FrontMatter.model_validate(yaml.safe_load(written))
    except yaml.YAMLError as error:
        raise SkillsError(f"{path}: the front matter is not YAML") from error
    except ValidationError as error:
        refusal = refusal_of(error, whole="front matter")
        raise SkillsError(f"{path}: {refusal.message}") from error


def _text_in(folder: Path, file: str) -> str | None:
    """Read a file under a folder: a plain one, inside of it even behind all links, in UTF-8 and not too long."""
    if "\0" in file or PurePosixPath(file).is_absolute():
        return None
    try:
        path = (folder / file).resolve(strict=True)
        if not path.is_relative_to(folder) or not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as opened:
            read = opened.read(MAX_FILE_BYTES + 1)
        return read.decode() if len(read) <= MAX_FILE_BYTES else None
    except (OSError, ValueError):
        return None
