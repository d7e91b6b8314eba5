"""chat_shell's settings; docs/settings.md explains each."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, model_validator

from chat_shell.models.configured.entries import ModelApi, key_variables
from chat_shell.tools.configured.tools_file import tool_variables
from shared.certificates import CertificateFiles
from shared.environment import HeaderSecret, LongHeaderSecret, ServiceSettings, WebAddress
from shared.message_size import LONGEST_MESSAGE_BYTES, MOST_HELD_BYTES
from shared.outgoing import OutgoingProxy, ProxyAddress
from shared.prompts.tool_results import MAX_TOOL_RESULT_TOKENS

DEMO_MODEL = "demo-model"
DEMO_MODEL_BASE_URL = "http://127.0.0.1:8090/v1"


class Settings(ServiceSettings):
    """All settings of chat_shell. Credentials of models are settings of this service only."""

    prefix: ClassVar[str] = "CHAT_SHELL_"

    host: str = Field("127.0.0.1", alias="CHAT_SHELL_HOST")
    grpc_port: int = Field(50051, alias="CHAT_SHELL_GRPC_PORT", ge=0, le=65535)
    http_port: int = Field(8001, alias="CHAT_SHELL_HTTP_PORT", ge=0, le=65535)
    admin_port: int | None = Field(None, alias="CHAT_SHELL_ADMIN_PORT", ge=0, le=65535)
    backend_url: WebAddress = Field("http://127.0.0.1:8000", alias="CHAT_SHELL_BACKEND_URL")
    model: str = Field(DEMO_MODEL, alias="CHAT_SHELL_MODEL", min_length=1)
    model_base_url: WebAddress = Field(DEMO_MODEL_BASE_URL, alias="CHAT_SHELL_MODEL_BASE_URL")
    model_api_key: HeaderSecret | None = Field(None, alias="CHAT_SHELL_MODEL_API_KEY")
    model_api: ModelApi = Field(ModelApi.CHAT_COMPLETIONS, alias="CHAT_SHELL_MODEL_API")
    models_file: Path | None = Field(None, alias="CHAT_SHELL_MODELS_FILE")
    tools_file: Path | None = Field(None, alias="CHAT_SHELL_TOOLS_FILE")
    model_idle_timeout_seconds: float = Field(60, alias="CHAT_SHELL_MODEL_IDLE_TIMEOUT_SECONDS", gt=0, le=86_400)
    safe_summary_model: str | None = Field(None, alias="CHAT_SHELL_SAFE_SUMMARY_MODEL", max_length=256)
    safe_summary_base_url: WebAddress | None = Field(None, alias="CHAT_SHELL_SAFE_SUMMARY_BASE_URL")
    safe_summary_api_key: HeaderSecret | None = Field(None, alias="CHAT_SHELL_SAFE_SUMMARY_API_KEY")
    safe_summary_cache_salt: bool = Field(False, alias="CHAT_SHELL_SAFE_SUMMARY_CACHE_SALT")
    safe_summary_timeout_seconds: float = Field(20, alias="CHAT_SHELL_SAFE_SUMMARY_TIMEOUT_SECONDS", gt=0, le=86_400)
    findings_file: Path | None = Field(None, alias="CHAT_SHELL_FINDINGS_FILE")
    canary_limit: int = Field(3, alias="CHAT_SHELL_CANARY_LIMIT", ge=1, le=1_000_000)
    max_model_calls: int = Field(12, alias="CHAT_SHELL_MAX_MODEL_CALLS", ge=1, le=1000)
    max_tool_result_tokens: int = Field(
        MAX_TOOL_RESULT_TOKENS, alias="CHAT_SHELL_MAX_TOOL_RESULT_TOKENS", ge=256, le=100_000_000
    )
    log_llm_requests: bool = Field(False, alias="CHAT_SHELL_LOG_LLM_REQUESTS")
    max_message_bytes: int = Field(67_108_864, alias="CHAT_SHELL_MAX_MESSAGE_BYTES", ge=1024, le=LONGEST_MESSAGE_BYTES)
    max_messages_bytes: int = Field(134_217_728, alias="CHAT_SHELL_MAX_MESSAGES_BYTES", ge=1024, le=MOST_HELD_BYTES)
    tls_cert_file: Path | None = Field(None, alias="CHAT_SHELL_TLS_CERT_FILE")
    tls_key_file: Path | None = Field(None, alias="CHAT_SHELL_TLS_KEY_FILE")
    tls_ca_file: Path | None = Field(None, alias="CHAT_SHELL_TLS_CA_FILE")
    https_proxy: ProxyAddress | None = Field(None, alias="HTTPS_PROXY")
    no_proxy: str = Field("", alias="NO_PROXY")
    service_token: LongHeaderSecret = Field(alias="SERVICE_TOKEN")

    @classmethod
    def other_variables(cls, given: Mapping[str, str]) -> frozenset[str]:
        """Return the names of the variables in which the files of models and of tools say that keys are."""
        models, tools = given.get("CHAT_SHELL_MODELS_FILE"), given.get("CHAT_SHELL_TOOLS_FILE")
        return frozenset[str]().union(
            key_variables(Path(models)) if models is not None else (),
            tool_variables(Path(tools)) if tools is not None else (),
        )

    @property
    def certificate_files(self) -> CertificateFiles:
        """What this service shows in TLS connections, and whom it trusts."""
        return CertificateFiles(self.tls_cert_file, self.tls_key_file, self.tls_ca_file)

    @property
    def proxy(self) -> OutgoingProxy:
        """The way to addresses outside."""
        return OutgoingProxy(address=self.https_proxy, direct_hosts=self.no_proxy)

    @model_validator(mode="after")
    def _check_nothing_in_clear(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("CHAT_SHELL_TLS_CERT_FILE and CHAT_SHELL_TLS_KEY_FILE: one is set without the other")
        if self.tls_ca_file is not None and not self.backend_url.startswith("https://"):
            raise ValueError("CHAT_SHELL_BACKEND_URL: must begin with https:// with CHAT_SHELL_TLS_CA_FILE")
        return self

    @model_validator(mode="after")
    def _name_and_address_together(self) -> Self:
        if ("model" in self.model_fields_set) != ("model_base_url" in self.model_fields_set):
            raise ValueError("CHAT_SHELL_MODEL and CHAT_SHELL_MODEL_BASE_URL: one is set without the other")
        return self

    @model_validator(mode="after")
    def _room_for_one_message(self) -> Self:
        if self.max_messages_bytes < self.max_message_bytes:
            raise ValueError("CHAT_SHELL_MAX_MESSAGES_BYTES: must be at least CHAT_SHELL_MAX_MESSAGE_BYTES")
        return self
