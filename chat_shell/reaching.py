"""Reading what the settings name, with errors that name the setting."""

from collections.abc import Mapping

from chat_shell.models.configured.entries import ModelConfigurationError, ModelEntry, read_models_file
from chat_shell.sealed.gate.codebook import Codebook, extend_codebook, read_shipped
from chat_shell.settings import Settings
from shared.certificates import Certificates, UnusableCertificates
from shared.environment import WrongSetting
from shared.telemetry import LoggingCertificates


def read_model_entries(settings: Settings, environ: Mapping[str, str]) -> tuple[ModelEntry, ...]:
    """Return the operator's models.

    Raises:
        WrongSetting: the list of models cannot be used.
    """
    single = ModelEntry(
        name=settings.model,
        api=settings.model_api.value,
        base_url=settings.model_base_url,
        api_key=settings.model_api_key,
    )
    if settings.models_file is None:
        return (single,)
    try:
        listed = read_models_file(settings.models_file, environ)
    except ModelConfigurationError as error:
        raise WrongSetting(f"CHAT_SHELL_MODELS_FILE: {error}") from None
    return (single, *listed) if environ.get("CHAT_SHELL_MODEL") else listed


def read_codebook(settings: Settings) -> Codebook:
    """Return the closed lists of findings, with the operator's own codes.

    Raises:
        WrongSetting: their file cannot be used.
    """
    if settings.findings_file is None:
        return read_shipped()
    try:
        return extend_codebook(settings.findings_file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WrongSetting(f"CHAT_SHELL_FINDINGS_FILE: {error}") from None


def read_certificates(settings: Settings) -> Certificates:
    """Return what this service shows in TLS connections, and whom it trusts.

    Raises:
        WrongSetting: a file of certificates cannot be used.
    """
    try:
        return Certificates(settings.certificate_files, LoggingCertificates())
    except UnusableCertificates as error:
        raise WrongSetting(f"CHAT_SHELL_TLS_*: {error}") from None
