"""Settings from the environment: one reading for both services, with secrets from files."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, SecretStr, ValidationError

SettingsT = TypeVar("SettingsT", bound=BaseModel)


class WrongSetting(Exception):
    """A setting that stops the start; its text is one line that names the variable."""


def read_settings(model: type[SettingsT], environ: Mapping[str, str]) -> SettingsT:
    """Read a settings model whose fields have their variables' names as aliases.

    An empty variable counts as not set. A field of type `SecretStr` may also come from the file that
    `<NAME>_FILE` points to, its trailing newline left out.

    Raises:
        WrongSetting: a value is wrong or missing, or a secret's file cannot be read.
    """
    given: dict[str, str] = {}
    for field in model.model_fields.values():
        name = field.alias or ""
        value = environ.get(name, "")
        if not value and _is_secret(field.annotation) and environ.get(f"{name}_FILE"):
            value = _read_secret(f"{name}_FILE", environ[f"{name}_FILE"])
        if value:
            given[name] = value
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise WrongSetting(_first_complaint(error)) from None


def _is_secret(annotation: object) -> bool:
    return annotation is SecretStr or "SecretStr" in str(annotation)


def _read_secret(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongSetting(f"{name}: cannot read {path} ({type(error).__name__})") from None


def _first_complaint(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    place = [str(step) for step in first["loc"]]
    if first["type"] == "missing" and len(place) == 1:
        return f"{place[0]}: is required and not set"
    return ": ".join([*place, first["msg"].removeprefix("Value error, ")])
