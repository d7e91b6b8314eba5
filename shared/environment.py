"""Read the settings of both services from environment variables, or from files that they name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, SecretStr, ValidationError

SettingsT = TypeVar("SettingsT", bound=BaseModel)


class WrongSetting(Exception):
    """A setting with which a service cannot start; the message is one line that names the variable."""


def read_settings(model: type[SettingsT], environ: Mapping[str, str]) -> SettingsT:
    """Read settings into a model whose fields have the names of their variables as aliases.

    An empty variable counts as not set. Instead of `<NAME>`, the variable `<NAME>_FILE` may name a file with the value,
    which suits secrets and addresses that contain a password; newlines at the end of the file are ignored.

    Raises:
        WrongSetting: a value is wrong or missing, or its file cannot be read.
    """
    given: dict[str, str] = {}
    for field in model.model_fields.values():
        name = field.alias or ""
        value = environ.get(name, "")
        if not value and environ.get(f"{name}_FILE"):
            value = _read_file(f"{name}_FILE", environ[f"{name}_FILE"])
        if value:
            given[name] = value
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise WrongSetting(_first_complaint(error)) from None


def web_address(value: str) -> str:
    """Return an http or https address unchanged.

    Raises:
        ValueError: the address is no such address, or has credentials, a query or a fragment, which logs must not show.
    """
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http or https address")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("must hold neither credentials nor a query")
    return value


def shown_address(address: str) -> str:
    """Return an address without its user, password and query, so that it may be logged."""
    scheme, _, rest = address.partition("://")
    place = rest.rpartition("@")[2].partition("?")[0]
    return f"{scheme}://{place}"


def cause_of(error: BaseException) -> str:
    """Return the class name of an error's first cause; its message is left out, because drivers put secrets there."""
    while (before := error.__cause__ or error.__context__) and isinstance(before, Exception):
        error = before
    return type(error).__name__


def _header_value(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if not (text.isascii() and text.isprintable() and text == text.strip()):
        raise ValueError("holds characters that no header can carry, such as a line's end")
    return secret


HeaderSecret = Annotated[SecretStr, AfterValidator(_header_value)]
WebAddress = Annotated[str, AfterValidator(web_address)]


def _read_file(name: str, path: str) -> str:
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
