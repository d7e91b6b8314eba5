"""Read the settings of both services from environment variables, or from files that they name."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr, ValidationError

from shared.models.invalid_fields import Complaint, plain_words
from shared.outgoing import is_web_address
from shared.setting_names import SERVICE_LINKS_HINT, find_typing_error, is_injected, nearest_name, unknown_names

MIN_SECRET_CHARS = 16


class WrongSetting(Exception):
    """A setting with which a service cannot start; the message is one line that names the variable."""


class ServiceSettings(BaseModel):
    """The settings of a service; each field has the name of its variable as alias, and most begin with the prefix."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    prefix: ClassVar[str]

    @classmethod
    def variables(cls) -> tuple[str, ...]:
        """Return the names of all settings."""
        return tuple(field.alias or "" for field in cls.model_fields.values())

    @classmethod
    def other_variables(cls, given: Mapping[str, str]) -> frozenset[str]:
        """Return the names of variables that are no settings, but that the given settings make the service read."""
        return frozenset()


SettingsT = TypeVar("SettingsT", bound=ServiceSettings)


def read_settings(model: type[SettingsT], environ: Mapping[str, str]) -> SettingsT:
    """Read settings into a model whose fields have the names of their variables as aliases.

    A variable that begins with the prefix of the model and is no setting is taken for a typing error. An empty variable
    counts as not set. Instead of `<NAME>`, the variable `<NAME>_FILE` may name a file with the value, which suits
    secrets and addresses that contain a password; newlines at the end of the file are ignored.

    Raises:
        WrongSetting: a value is wrong or missing, its file cannot be read, or a name is that of no setting.
    """
    given: dict[str, str] = {}
    for name in model.variables():
        if value := value_of(name, environ):
            given[name] = value
    _refuse_unknown_names(model, given, environ)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise WrongSetting(_first_complaint(error, model, environ)) from None


def value_of(name: str, environ: Mapping[str, str]) -> str:
    """Return a variable's value, or that of the file that `<NAME>_FILE` names; empty where neither is set.

    Raises:
        WrongSetting: both are set, or the file cannot be read.
    """
    value, path = environ.get(name, ""), environ.get(f"{name}_FILE", "")
    if value and path:
        raise WrongSetting(f"{name} and {name}_FILE: both are set, and only one may be")
    return _read_file(f"{name}_FILE", path) if path else value


def web_address(value: str) -> str:
    """Return an http or https address unchanged.

    Raises:
        ValueError: the address is no such address, or has credentials, a query or a fragment, which logs must not show.
    """
    if not is_web_address(value):
        raise ValueError("must be an http or https address")
    parts = urlsplit(value)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("must hold neither credentials nor a query")
    return value


def redact_address(address: str) -> str:
    """Return an address without its user, password and query, so that it may be logged."""
    scheme, _, rest = address.partition("://")
    place = rest.rpartition("@")[2].partition("?")[0]
    return f"{scheme}://{place}"


def cause_of(error: BaseException) -> str:
    """Return the class name of an error's first cause; its message is left out, because drivers put secrets there.

    Of a certificate that is not trusted the reason stands there, too: OpenSSL words it, and the driver adds nothing.
    """
    while (before := error.__cause__ or error.__context__) and isinstance(before, Exception):
        error = before
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{type(error).__name__}: {error.verify_message}"
    return type(error).__name__


def _header_value(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if not (text.isascii() and text.isprintable() and text == text.strip()):
        raise ValueError("holds characters that no header can carry, such as a line's end")
    return secret


def _long_enough(secret: SecretStr) -> SecretStr:
    if len(secret.get_secret_value()) < MIN_SECRET_CHARS:
        raise ValueError(f"must have at least {MIN_SECRET_CHARS} characters, better 32 random ones or more")
    return secret


HeaderSecret = Annotated[SecretStr, AfterValidator(_header_value)]
LongSecret = Annotated[SecretStr, AfterValidator(_long_enough)]
LongHeaderSecret = Annotated[HeaderSecret, AfterValidator(_long_enough)]
WebAddress = Annotated[str, AfterValidator(web_address)]


def _read_file(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongSetting(f"{name}: cannot read {path} ({type(error).__name__})") from None


def _refuse_unknown_names(model: type[ServiceSettings], given: Mapping[str, str], environ: Mapping[str, str]) -> None:
    known = (*model.variables(), *model.other_variables(given))
    for name in unknown_names(model.prefix, known, environ):
        nearest = nearest_name(name, model.prefix, model.variables())
        rest = f"; did you mean {nearest}?" if nearest is not None else ": docs/settings.md lists those that there are"
        raise WrongSetting(f"{name}: there is no such setting{rest}")
    for name in model.variables():
        if is_injected(name, environ.get(name, "")):
            raise WrongSetting(f"{name}: is no value of ours: {SERVICE_LINKS_HINT}, or {name} itself")


def _first_complaint(error: ValidationError, model: type[ServiceSettings], environ: Mapping[str, str]) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    place = [str(step) for step in first["loc"]]
    if first["type"] == "missing" and len(place) == 1:
        similar = find_typing_error(place[0], environ, model.variables())
        return f"{place[0]}: is required and not set" + (f"; {similar} is: a typing error?" if similar else "")
    return ": ".join([*place, plain_words(Complaint.of(first))])
