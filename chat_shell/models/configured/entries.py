"""The operator's list of models, which is checked before anything starts."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError, field_validator

from chat_shell.models.anthropic_messages.thinking import ThinkingMode
from chat_shell.models.chat_completions.encoder import TokenLimitName
from chat_shell.models.configured.prices import Prices
from shared.environment import HeaderSecret, WebAddress
from shared.models.invalid_fields import refusal_of
from shared.models.values import JsonValue

DEFAULT_CONTEXT_WINDOW_TOKENS = 128_000
"""The window of most current models, hosted or open (model pages of OpenAI, Mistral, Meta, Qwen)."""
DEFAULT_MAX_OUTPUT_TOKENS = 8_192
MOST_TOKENS = 1_000_000_000
"""No model's window is near it, and sums of it stay numbers that every protocol carries."""


class ModelApi(StrEnum):
    """The provider APIs that an adapter exists for."""

    CHAT_COMPLETIONS = "chat_completions"
    RESPONSES = "responses"
    ANTHROPIC_MESSAGES = "anthropic_messages"


EXTRA_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    ModelApi.CHAT_COMPLETIONS: (
        "top_k",
        "min_p",
        "repetition_penalty",
        "chat_template_kwargs",
        "thinking",
        "logit_bias",
    ),
    ModelApi.RESPONSES: (),
    ModelApi.ANTHROPIC_MESSAGES: ("top_k", "thinking"),
}
"""What the models of an API take beside the parameters of OpenAI's Responses, where their entries do not say."""


class ModelConfigurationError(ValueError):
    """The list of models is wrong; the message is one line that names the file and the field."""


class _Fields(BaseModel):
    """The fields that entries from the settings and from the file have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    name: str = Field(min_length=1)
    api: str = "chat_completions"
    base_url: WebAddress
    model: str | None = Field(default=None, min_length=1)
    context_window_tokens: int = Field(default=DEFAULT_CONTEXT_WINDOW_TOKENS, ge=1, le=MOST_TOKENS)
    max_output_tokens: int = Field(default=DEFAULT_MAX_OUTPUT_TOKENS, ge=1, le=MOST_TOKENS)
    max_tokens_field: TokenLimitName = "max_tokens"
    thinking: ThinkingMode = ThinkingMode.ADAPTIVE
    extra_parameters: tuple[str, ...] | None = None
    prices: Prices | None = None

    @field_validator("api")
    @classmethod
    def _known_api(cls, value: str) -> str:
        if value not in tuple(ModelApi):
            raise ValueError(f"there is no API {value!r}; there is: {', '.join(ModelApi)}")
        return value


class ModelEntry(_Fields):
    """A model that is offered as `name` and called `model` at its provider (None: the same)."""

    api_key: HeaderSecret | None = None

    @property
    def taken_parameters(self) -> tuple[str, ...]:
        """What the model takes beside the parameters of OpenAI's Responses."""
        return EXTRA_PARAMETERS[self.api] if self.extra_parameters is None else self.extra_parameters


class _FileEntry(_Fields):
    api_key_env: str | None = None


_FILE_ENTRIES = TypeAdapter(list[_FileEntry])


def read_models_file(path: Path, environment: Mapping[str, str]) -> tuple[ModelEntry, ...]:
    """Read a YAML list of models, bare or under the key `models`; API keys are taken from `environment`.

    Raises:
        ModelConfigurationError: the file is unreadable or empty, a name repeats, a field is wrong, prices are in
            two currencies, or a key is not set.
    """
    entries = _validated(path, _parsed(path))
    doubled = sorted({entry.name for entry in entries if [other.name for other in entries].count(entry.name) > 1})
    if doubled:
        raise ModelConfigurationError(f"{path}: name: {doubled[0]!r} stands twice")
    currencies = sorted({entry.prices.currency for entry in entries if entry.prices is not None})
    if len(currencies) > 1:
        raise ModelConfigurationError(f"{path}: prices.currency: must be one for all, not {' and '.join(currencies)}")
    if not entries:
        raise ModelConfigurationError(f"{path}: models: the list is empty")
    return tuple(_with_key(path, index, entry, environment) for index, entry in enumerate(entries))


def key_variables(path: Path) -> frozenset[str]:
    """Return the names of the variables from which a list of models takes its keys; none of a list that is wrong."""
    try:
        return frozenset(entry.api_key_env for entry in _validated(path, _parsed(path)) if entry.api_key_env)
    except ModelConfigurationError:
        return frozenset()


def _parsed(path: Path) -> JsonValue:
    try:
        parsed: JsonValue = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelConfigurationError(f"{path}: cannot be read ({os.strerror(error.errno or 0)})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f", line {line + 1}"
        raise ModelConfigurationError(f"{path}{where}: is not YAML") from error
    return parsed["models"] if isinstance(parsed, dict) and set(parsed) == {"models"} else parsed


def _validated(path: Path, parsed: JsonValue) -> list[_FileEntry]:
    try:
        return _FILE_ENTRIES.validate_python(parsed)
    except ValidationError as error:
        refusal = refusal_of(error, "models")
        raise ModelConfigurationError(f"{path}: {refusal.message}") from error


def _with_key(path: Path, index: int, entry: _FileEntry, environment: Mapping[str, str]) -> ModelEntry:
    fields = {name: value for name, value in entry if name != "api_key_env"}
    if entry.api_key_env is None:
        return ModelEntry(**fields)
    key = environment.get(entry.api_key_env, "").strip()
    if not key:
        raise ModelConfigurationError(f"{path}: models[{index}].api_key_env: {entry.api_key_env} is not set")
    try:
        return ModelEntry(**fields, api_key=SecretStr(key))
    except ValidationError:
        # The validation error would repeat the key, so it is neither quoted nor chained.
        problem = f"{entry.api_key_env} holds characters that no header can carry"
        raise ModelConfigurationError(f"{path}: models[{index}].api_key_env: {problem}") from None
