"""The backend's settings; docs/settings.md explains each."""

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from backend.embeddings.domain import (
    ConfiguredEmbedder,
    EmbedderOptions,
    ProviderAddress,
    ProviderModel,
    RerankerOptions,
    TextForm,
)
from backend.extraction.domain.pictures import OcrEngine, OcrOptions, PictureTime
from backend.files.domain import MAX_FILES_OF_USER
from backend.foundation.domain.origins import ANY_ORIGIN, check_origin
from backend.identity.domain import MAX_RATE, TOKEN_FORM
from backend.identity_settings import IdentitySettings, split_list
from backend.openai_api.domain.client_left import OnDisconnect
from backend.retention.domain import RetentionTerms
from backend.turns.domain.image_addresses import ImageAddresses
from shared.certificates import CertificateFiles
from shared.environment import HeaderSecret, LongHeaderSecret, LongSecret, ServiceSettings, web_address
from shared.ids import CELL_PATTERN
from shared.message_size import LONGEST_MESSAGE_BYTES, MOST_HELD_BYTES
from shared.models.safe_summary import RestrictedGrade
from shared.outgoing import OutgoingProxy, ProxyAddress

DEFAULT_DATABASE_URL = "sqlite+aiosqlite:///var/ballast.db"
MAX_SYSTEM_PROMPT_CHARACTERS = 100_000
"""As many as an agent's own system prompt may have."""
Rate = Annotated[int | None, Field(ge=1, le=MAX_RATE)]
MAX_RETENTION_DAYS = 36_500
MAX_PREFIX_CHARACTERS = 500
"""Longer than the instructions that any model of today wants before a question."""

BUDGETS_EXAMPLE = "conversation=8,day=20,month=60"


class ContextPolicy(StrEnum):
    """How the dynamic context is sent: DURABLE as messages of the log, TAIL anew in each turn."""

    DURABLE = "durable"
    TAIL = "tail"


class RestrictedBudgets(BaseModel):
    """The most searches of a restricted member in a base, per conversation, day and 30 days."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    conversation: int = Field(ge=0, le=MAX_RATE)
    day: int = Field(ge=0, le=MAX_RATE)
    month: int = Field(ge=0, le=MAX_RATE)


def _with_scheme(*schemes: str) -> AfterValidator:
    def check(value: str) -> str:
        if value and urlsplit(value).scheme not in schemes:
            raise ValueError(f"must begin with one of {', '.join(f'{scheme}://' for scheme in schemes)}")
        return value

    return AfterValidator(check)


def _web_address_or_empty(value: str) -> str:
    return web_address(value) if value else value


OptionalWebAddress = Annotated[str, AfterValidator(_web_address_or_empty)]


def _image_urls(value: str) -> str:
    ImageAddresses.parse(value)
    return value


def _check_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be an IANA time zone such as Europe/Berlin") from None
    return value


def _split_budgets(value: object) -> object:
    if not isinstance(value, str):
        return value
    pairs = [pair.partition("=") for pair in value.split(",")]
    if any(not separator or not re.fullmatch("[0-9]+", number.strip()) for _, separator, number in pairs):
        raise ValueError(f"must look like {BUDGETS_EXAMPLE}")
    budgets = [(name.strip(), number.strip()) for name, _, number in pairs]
    if sorted(name for name, _ in budgets) != sorted(RestrictedBudgets.model_fields):
        raise ValueError(f"must give conversation, day and month, such as {BUDGETS_EXAMPLE}")
    return dict(budgets)


def _one_meaning(origins: tuple[str, ...]) -> tuple[str, ...]:
    """Check each origin; `*` makes others pointless, and beside them it is likely a mistake."""
    for origin in origins:
        check_origin(origin)
    if ANY_ORIGIN in origins and len(origins) > 1:
        raise ValueError("must hold either * alone or origins, such as https://app.example.com")
    return origins


_WHOLES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("jwt_", "sign_in_"): ("jwt_issuer", "jwt_audience", "jwt_jwks_url"),
    ("embedding_base_", "embedding_model", "embedding_api_", "embedding_query_", "embedding_passage_"): (
        "embedding_base_url",
        "embedding_model",
    ),
    ("sign_in_",): ("sign_in_client_id", "sign_in_url"),
    ("moderation_",): ("moderation_base_url", "moderation_model"),
    ("rerank_model", "rerank_api_"): ("rerank_base_url",),
}
"""Beginnings of the names of fields that mean nothing unless those behind them are set: alone they would be ignored."""


class DatabaseSettings(ServiceSettings):
    """What the commands need that change the schema and end; the settings of the service may be there as well."""

    prefix: ClassVar[str] = "BACKEND_"

    database_url: Annotated[str, _with_scheme("sqlite+aiosqlite", "postgresql+asyncpg")] = Field(
        DEFAULT_DATABASE_URL, alias="BACKEND_DATABASE_URL"
    )
    cell: str = Field("", alias="BACKEND_CELL", pattern=f"^({CELL_PATTERN})?$")
    cells: SecretStr | None = Field(None, alias="BACKEND_CELLS")
    search_url: Annotated[str, _with_scheme("milvus", "milvuss")] = Field("", alias="BACKEND_SEARCH_URL")

    @classmethod
    def other_variables(cls, given: Mapping[str, str]) -> frozenset[str]:
        """Return the names of all settings of the backend."""
        return frozenset(Settings.variables())


class ReadingSettings(DatabaseSettings):
    """What reading documents takes as well."""

    ocr: OcrEngine = Field(OcrEngine.OFF, alias="BACKEND_OCR")
    ocr_base_url: OptionalWebAddress = Field("", alias="BACKEND_OCR_BASE_URL")
    ocr_api_key: HeaderSecret | None = Field(None, alias="BACKEND_OCR_API_KEY")
    ocr_model: str = Field("", alias="BACKEND_OCR_MODEL", max_length=256)
    ocr_timeout_seconds: float = Field(60, alias="BACKEND_OCR_TIMEOUT_SECONDS", gt=0, le=600)
    ocr_document_seconds: float = Field(600, alias="BACKEND_OCR_DOCUMENT_SECONDS", gt=0, le=86_400)
    https_proxy: ProxyAddress | None = Field(None, alias="HTTPS_PROXY")
    no_proxy: str = Field("", alias="NO_PROXY")

    @model_validator(mode="after")
    def _ocr_is_whole(self) -> Self:
        is_given = bool(self.ocr_base_url), bool(self.ocr_model)
        if self.ocr is OcrEngine.MODEL and not all(is_given):
            raise ValueError("BACKEND_OCR: model needs BACKEND_OCR_BASE_URL and BACKEND_OCR_MODEL")
        if self.ocr is not OcrEngine.MODEL and (any(is_given) or self.ocr_api_key is not None):
            raise ValueError("BACKEND_OCR: must be model where BACKEND_OCR_BASE_URL, _MODEL or _API_KEY is set")
        return self

    @property
    def proxy(self) -> OutgoingProxy:
        """The way to addresses outside."""
        return OutgoingProxy(address=self.https_proxy, direct_hosts=self.no_proxy)

    @property
    def ocr_options(self) -> OcrOptions:
        """What finds the text in pictures, and how long it may take."""
        time, model = PictureTime(self.ocr_timeout_seconds, self.ocr_document_seconds), None
        if self.ocr is OcrEngine.MODEL:
            address = self._provider("the vision model", self.ocr_base_url, self.ocr_api_key)
            model = ProviderModel(address, self.ocr_model, self.ocr_timeout_seconds)
        return OcrOptions(self.ocr, model, time)

    def _provider(self, name: str, base_url: str, secret: HeaderSecret | None) -> ProviderAddress:
        key = secret.get_secret_value() if secret is not None else None
        return ProviderAddress(name, base_url, key, self.proxy.for_address(base_url))


class Settings(ReadingSettings, IdentitySettings):
    """All that an operator can set."""

    key_turns_per_minute: Rate = Field(None, alias="BACKEND_KEY_TURNS_PER_MINUTE")
    key_tokens_per_minute: Rate = Field(None, alias="BACKEND_KEY_TOKENS_PER_MINUTE")
    key_turns_at_once: Rate = Field(None, alias="BACKEND_KEY_TURNS_AT_ONCE")
    tenant_turns_per_minute: Rate = Field(None, alias="BACKEND_TENANT_TURNS_PER_MINUTE")
    tenant_tokens_per_minute: Rate = Field(None, alias="BACKEND_TENANT_TOKENS_PER_MINUTE")
    tenant_turns_at_once: Rate = Field(None, alias="BACKEND_TENANT_TURNS_AT_ONCE")

    host: str = Field("127.0.0.1", alias="BACKEND_HOST")
    port: int = Field(8000, alias="BACKEND_PORT", ge=0, le=65535)
    admin_port: int | None = Field(None, alias="BACKEND_ADMIN_PORT", ge=0, le=65535)
    redis_url: Annotated[str, _with_scheme("redis", "rediss", "unix")] = Field("", alias="BACKEND_REDIS_URL")
    chat_shell_url: Annotated[str, _with_scheme("grpc", "grpcs", "http", "https")] = Field(
        "grpc://127.0.0.1:50051", alias="BACKEND_CHAT_SHELL_URL"
    )
    admin_key: LongHeaderSecret | None = Field(None, alias="BACKEND_ADMIN_KEY")
    secret: LongSecret = Field(alias="BACKEND_SECRET")
    context_policy: ContextPolicy = Field(ContextPolicy.DURABLE, alias="BACKEND_CONTEXT_POLICY")
    system_prompt: str = Field("", alias="BACKEND_SYSTEM_PROMPT", max_length=MAX_SYSTEM_PROMPT_CHARACTERS)
    time_zone: Annotated[str, AfterValidator(_check_zone)] = Field("UTC", alias="BACKEND_TIME_ZONE")
    max_body_bytes: int = Field(33_554_432, alias="BACKEND_MAX_BODY_BYTES", ge=1024, le=LONGEST_MESSAGE_BYTES // 2)
    max_bodies_bytes: int = Field(268_435_456, alias="BACKEND_MAX_BODIES_BYTES", ge=1024, le=MOST_HELD_BYTES)
    max_turns: int = Field(1000, alias="BACKEND_MAX_TURNS", ge=1, le=100_000)
    max_files: int = Field(MAX_FILES_OF_USER, alias="BACKEND_MAX_FILES_PER_USER", ge=1, le=10_000_000)
    turn_timeout_seconds: float = Field(600, alias="BACKEND_TURN_TIMEOUT_SECONDS", gt=0, le=86_400)
    turn_lease_seconds: float = Field(9, alias="BACKEND_TURN_LEASE_SECONDS", ge=1, le=600)
    drain_seconds: float | None = Field(None, alias="BACKEND_DRAIN_SECONDS", gt=0, le=86_400)
    on_disconnect_chat: OnDisconnect = Field("cancel", alias="BACKEND_ON_DISCONNECT_CHAT")
    on_disconnect_responses: OnDisconnect = Field("continue", alias="BACKEND_ON_DISCONNECT_RESPONSES")
    event_retention_seconds: float = Field(600, alias="BACKEND_EVENT_RETENTION_SECONDS", ge=0, le=86_400)
    retention_days: int | None = Field(None, alias="BACKEND_RETENTION_DAYS", ge=1, le=MAX_RETENTION_DAYS)
    audit_retention_days: int | None = Field(None, alias="BACKEND_AUDIT_RETENTION_DAYS", ge=1, le=MAX_RETENTION_DAYS)
    restricted_budgets: Annotated[RestrictedBudgets, BeforeValidator(_split_budgets)] = Field(
        RestrictedBudgets(conversation=8, day=20, month=60), alias="BACKEND_RESTRICTED_BUDGETS"
    )
    restricted_facts: int = Field(20, alias="BACKEND_RESTRICTED_FACTS", ge=0, le=1_000_000)
    restricted_meaning: bool = Field(False, alias="BACKEND_RESTRICTED_MEANING")
    restricted_grade: RestrictedGrade = Field(RestrictedGrade.OPEN, alias="BACKEND_RESTRICTED_GRADE")
    restricted_stream_seconds: float = Field(3.2, alias="BACKEND_RESTRICTED_STREAM_SECONDS", ge=0, le=60)
    cors_origins: Annotated[tuple[str, ...], BeforeValidator(split_list), AfterValidator(_one_meaning)] = Field(
        (), alias="BACKEND_CORS_ORIGINS"
    )
    strict_requests: bool = Field(False, alias="BACKEND_STRICT_REQUESTS")
    image_urls: Annotated[str, AfterValidator(_image_urls)] = Field("pass", alias="BACKEND_IMAGE_URLS")
    console: bool = Field(True, alias="BACKEND_CONSOLE")
    embedding_base_url: OptionalWebAddress = Field("", alias="BACKEND_EMBEDDING_BASE_URL")
    embedding_api_key: HeaderSecret | None = Field(None, alias="BACKEND_EMBEDDING_API_KEY")
    embedding_model: str = Field("", alias="BACKEND_EMBEDDING_MODEL", max_length=256)
    embedding_query_prefix: str = Field("", alias="BACKEND_EMBEDDING_QUERY_PREFIX", max_length=MAX_PREFIX_CHARACTERS)
    embedding_passage_prefix: str = Field(
        "", alias="BACKEND_EMBEDDING_PASSAGE_PREFIX", max_length=MAX_PREFIX_CHARACTERS
    )
    embedding_digest: str = Field("", alias="BACKEND_EMBEDDING_DIGEST", pattern="^([0-9a-f]{64})?$")
    embedding_query_type: str = Field("", alias="BACKEND_EMBEDDING_QUERY_INPUT_TYPE", max_length=64)
    embedding_passage_type: str = Field("", alias="BACKEND_EMBEDDING_PASSAGE_INPUT_TYPE", max_length=64)
    embedding_batch_texts: int = Field(32, alias="BACKEND_EMBEDDING_BATCH_TEXTS", ge=1, le=128)
    embedding_concurrency: int = Field(4, alias="BACKEND_EMBEDDING_CONCURRENCY", ge=1, le=64)
    embedding_timeout_seconds: float = Field(30, alias="BACKEND_EMBEDDING_TIMEOUT_SECONDS", gt=0, le=600)
    embedding_deadline_seconds: float = Field(0.3, alias="BACKEND_EMBEDDING_QUERY_TIMEOUT_SECONDS", gt=0, le=30)
    rerank_base_url: OptionalWebAddress = Field("", alias="BACKEND_RERANK_BASE_URL")
    rerank_api_key: HeaderSecret | None = Field(None, alias="BACKEND_RERANK_API_KEY")
    rerank_model: str = Field("", alias="BACKEND_RERANK_MODEL", max_length=256)
    rerank_deadline_seconds: float = Field(0.5, alias="BACKEND_RERANK_TIMEOUT_SECONDS", gt=0, le=30)
    moderation_base_url: OptionalWebAddress = Field("", alias="BACKEND_MODERATION_BASE_URL")
    moderation_api_key: HeaderSecret | None = Field(None, alias="BACKEND_MODERATION_API_KEY")
    moderation_model: str = Field("", alias="BACKEND_MODERATION_MODEL", max_length=256)
    moderation_timeout_seconds: float = Field(10, alias="BACKEND_MODERATION_TIMEOUT_SECONDS", gt=0, le=120)
    tls_cert_file: Path | None = Field(None, alias="BACKEND_TLS_CERT_FILE")
    tls_key_file: Path | None = Field(None, alias="BACKEND_TLS_KEY_FILE")
    tls_ca_file: Path | None = Field(None, alias="BACKEND_TLS_CA_FILE")
    service_token: LongHeaderSecret = Field(alias="SERVICE_TOKEN")

    @property
    def certificate_files(self) -> CertificateFiles:
        """What this service shows in TLS connections, and whom it trusts."""
        return CertificateFiles(self.tls_cert_file, self.tls_key_file, self.tls_ca_file)

    @property
    def retention(self) -> RetentionTerms:
        """For how long things are kept."""
        untouched, audit = (
            timedelta(days=days) if days is not None else None
            for days in (self.retention_days, self.audit_retention_days)
        )
        return RetentionTerms(untouched, audit)

    @model_validator(mode="after")
    def _wholes(self) -> Self:
        fields = type(self).model_fields
        for parts, needed in _WHOLES.items():
            set_here = (name for name in fields if name in self.model_fields_set and name.startswith(parts))
            given = [fields[name].alias for name in set_here]
            for name in needed:
                if given and not getattr(self, name):
                    raise ValueError(f"{fields[name].alias}: must be set where {given[0]} is")
        return self

    @model_validator(mode="after")
    def _encrypts_all(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("BACKEND_TLS_CERT_FILE and BACKEND_TLS_KEY_FILE: one is set without the other")
        if self.tls_ca_file is not None and urlsplit(self.chat_shell_url).scheme not in ("grpcs", "https"):
            raise ValueError("BACKEND_CHAT_SHELL_URL: must begin with grpcs:// or https:// with BACKEND_TLS_CA_FILE")
        return self

    @model_validator(mode="after")
    def _key_is_no_token(self) -> Self:
        key = self.admin_key.get_secret_value() if self.admin_key is not None else ""
        if self.jwt_issuer and TOKEN_FORM.fullmatch(key):
            raise ValueError("BACKEND_ADMIN_KEY: has the form of a JWT, and would be taken for one")
        return self

    @model_validator(mode="after")
    def _one_body_fits(self) -> Self:
        if self.max_bodies_bytes < self.max_body_bytes:
            raise ValueError("BACKEND_MAX_BODIES_BYTES: must be at least BACKEND_MAX_BODY_BYTES")
        return self

    @property
    def embedder(self) -> EmbedderOptions | None:
        """What makes vectors of texts; None where nothing is to."""
        if not self.embedding_base_url:
            return None
        return EmbedderOptions(
            self._provider("the embedder", self.embedding_base_url, self.embedding_api_key),
            ConfiguredEmbedder(
                model=self.embedding_model,
                query=TextForm(prefix=self.embedding_query_prefix, input_type=self.embedding_query_type),
                passage=TextForm(prefix=self.embedding_passage_prefix, input_type=self.embedding_passage_type),
            ),
            batch_texts=self.embedding_batch_texts,
            concurrency=self.embedding_concurrency,
            timeout_seconds=self.embedding_timeout_seconds,
            deadline_seconds=self.embedding_deadline_seconds,
        )

    @property
    def reranker(self) -> RerankerOptions | None:
        """What reorders the chunks of a search; None where nothing is to."""
        if not self.rerank_base_url:
            return None
        address = self._provider("the reranker", self.rerank_base_url, self.rerank_api_key)
        return RerankerOptions(address, self.rerank_model, self.rerank_deadline_seconds)

    @property
    def moderation(self) -> ProviderModel | None:
        """What judges texts and images for callers; None where nothing is to."""
        if not self.moderation_base_url:
            return None
        address = self._provider("the moderation model", self.moderation_base_url, self.moderation_api_key)
        return ProviderModel(address, self.moderation_model, self.moderation_timeout_seconds)
