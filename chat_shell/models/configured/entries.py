"""The operator's list of models, which is checked before anything starts."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from chat_shell.models.anthropic_messages.thinking import ThinkingMode
from chat_shell.models.chat_completions.encoder import TokenLimitName
from chat_shell.models.configured.cache_rules import CacheFields, CacheKind
from chat_shell.models.configured.prices import MOST_TOKENS, CompactWhen, Prices, full_prices
from chat_shell.models.transport.streaming import REQUEST_HEADERS
from shared.environment import MIN_SECRET_CHARS, HeaderSecret, LongSecret, WebAddress
from shared.models.events import CacheRule
from shared.models.invalid_fields import refusal_of
from shared.models.values import JsonValue

DEFAULT_CONTEXT_WINDOW_TOKENS = 128_000
"""The window of most current models, hosted or open (model pages of OpenAI, Mistral, Meta, Qwen)."""
DEFAULT_MAX_OUTPUT_TOKENS = 8_192


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


CACHE_KINDS: Mapping[str, tuple[CacheKind, ...]] = {
    ModelApi.CHAT_COMPLETIONS: (CacheKind.AUTOMATIC, CacheKind.BREAKPOINTS),
    ModelApi.RESPONSES: (CacheKind.AUTOMATIC, CacheKind.BREAKPOINTS),
    ModelApi.ANTHROPIC_MESSAGES: (CacheKind.MARKS, CacheKind.AUTOMATIC),
}
"""What caches the providers of an API have, the usual one first."""

DIAGNOSED_KINDS: Mapping[str, tuple[CacheKind, ...]] = {
    ModelApi.CHAT_COMPLETIONS: (),
    ModelApi.RESPONSES: (CacheKind.BREAKPOINTS,),
    ModelApi.ANTHROPIC_MESSAGES: (CacheKind.MARKS,),
}
"""Of which of them the API says why they were missed."""

_OWN_HEADERS = {*map(str.lower, REQUEST_HEADERS), "authorization", "host", "content-length", "x-api-key"}


def rule_of(cache: CacheFields | None, api: str) -> CacheRule | None:
    """Return how a provider's cache works; None where its entry says nothing of it."""
    return None if cache is None else cache.rule_of(CACHE_KINDS[api][0])


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
    cache: CacheFields | None = None
    compact_when: CompactWhen | None = None
    affinity_header: str | None = Field(default=None, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", max_length=64)

    @field_validator("api")
    @classmethod
    def _check_api(cls, value: str) -> str:
        if value not in tuple(ModelApi):
            raise ValueError(f"there is no API {value!r}; there is: {', '.join(ModelApi)}")
        return value

    @field_validator("cache")
    @classmethod
    def _cache_of_the_api(cls, value: CacheFields | None, info: ValidationInfo) -> CacheFields | None:
        if value is not None and "api" in info.data:
            api = info.data["api"]
            value.check(CACHE_KINDS[api], DIAGNOSED_KINDS[api])
        return value

    @field_validator("compact_when")
    @classmethod
    def _check_prices(cls, value: CompactWhen | None, info: ValidationInfo) -> CompactWhen | None:
        fields = info.data
        if value is not None and {"prices", "cache", "api"} <= fields.keys():
            value.check(full_prices(fields["prices"], rule_of(fields["cache"], fields["api"])))
        return value

    @field_validator("affinity_header")
    @classmethod
    def _header_of_its_own(cls, value: str | None) -> str | None:
        if value is not None and value.lower() in _OWN_HEADERS:
            raise ValueError("must be a header that requests to models do not have anyway")
        return value


class ModelEntry(_Fields):
    """A model that is offered as `name` and called `model` at its provider (None: the same)."""

    api_key: HeaderSecret | None = None
    cache_salt: LongSecret | None = None

    @property
    def cache_rule(self) -> CacheRule | None:
        """How the provider's cache works; None where the entry says nothing of it."""
        return rule_of(self.cache, self.api)

    @property
    def full_prices(self) -> Prices | None:
        """The prices, with those of the cache; None where the entry has none."""
        return full_prices(self.prices, self.cache_rule)

    @property
    def compact_from_tokens(self) -> int:
        """From how many tokens on a conversation costs more than the entry allows; 0 where it does not say."""
        prices = self.full_prices
        return self.compact_when.tokens_at(prices) if self.compact_when is not None and prices is not None else 0

    @property
    def is_diagnosed(self) -> bool:
        """Whether the provider is asked why its cache was missed."""
        return self.cache is not None and self.cache.diagnostics

    @property
    def taken_parameters(self) -> tuple[str, ...]:
        """What the model takes beside the parameters of OpenAI's Responses."""
        return EXTRA_PARAMETERS[self.api] if self.extra_parameters is None else self.extra_parameters


class _FileEntry(_Fields):
    api_key_env: str | None = None
    cache_salt_env: str | None = None

    @field_validator("cache_salt_env")
    @classmethod
    def _api_with_a_salt(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("api") == ModelApi.ANTHROPIC_MESSAGES:
            raise ValueError("this api has no salt; leave it out")
        return value


_FILE_ENTRIES = TypeAdapter(list[_FileEntry])


def read_models_file(path: Path, environment: Mapping[str, str]) -> tuple[ModelEntry, ...]:
    """Read a YAML list of models, bare or under the key `models`; API keys are taken from `environment`.

    Raises:
        ModelConfigurationError: the file is unreadable or empty, a name repeats, a field is wrong, prices are in
            two currencies, or a key is not set.
    """
    entries = _validate(path, _parse(path))
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
        entries = _validate(path, _parse(path))
    except ModelConfigurationError:
        return frozenset()
    return frozenset(name for entry in entries for name in (entry.api_key_env, entry.cache_salt_env) if name)


def _parse(path: Path) -> JsonValue:
    try:
        parsed: JsonValue = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelConfigurationError(f"{path}: cannot be read ({os.strerror(error.errno or 0)})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f", line {line + 1}"
        raise ModelConfigurationError(f"{path}{where}: is not YAML") from error
    return parsed["models"] if isinstance(parsed, dict) and set(parsed) == {"models"} else parsed


def _validate(path: Path, parsed: JsonValue) -> list[_FileEntry]:
    try:
        return _FILE_ENTRIES.validate_python(parsed)
    except ValidationError as error:
        refusal = refusal_of(error, "models")
        raise ModelConfigurationError(f"{path}: {refusal.message}") from error


def _with_key(path: Path, index: int, entry: _FileEntry, environment: Mapping[str, str]) -> ModelEntry:
    fields = {name: value for name, value in entry if not name.endswith("_env")}
    for name in ("api_key", "cache_salt"):
        variable: str | None = getattr(entry, f"{name}_env")
        if variable is None:
            continue
        field = f"{path}: models[{index}].{name}_env"
        value = environment.get(variable, "").strip()
        if not value:
            raise ModelConfigurationError(f"{field}: {variable} is not set")
        try:
            fields = dict(ModelEntry.model_validate(fields | {name: SecretStr(value)}))
        except ValidationError:
            # The validation error would repeat the secret, so it is neither quoted nor chained.
            raise ModelConfigurationError(f"{field}: {variable} {_REFUSED_SECRETS[name]}") from None
    return ModelEntry.model_validate(fields)


_REFUSED_SECRETS = {
    "api_key": "holds characters that no header can carry",
    "cache_salt": f"must have at least {MIN_SECRET_CHARS} characters",
}
