"""Classify a provider's error response by its status and message.

Our error messages never repeat text of the provider, which might contain a credential or the prompt.
"""

import re
from collections.abc import Sequence

import orjson

from shared.errors import (
    CONTEXT_EXCEEDED,
    IMAGE_CODES,
    ModelAuthenticationFailed,
    ModelContentFiltered,
    ModelContextOverflow,
    ModelError,
    ModelProtocolViolated,
    ModelQuotaExhausted,
    ModelRateLimited,
    ModelRequestRejected,
    ModelUnavailable,
    ModelUnknownToProvider,
)
from shared.models.values import JsonObject, JsonValue

_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_OVERFLOW_WORDS = re.compile(
    r"maximum context length"  # OpenAI, vLLM, DeepSeek, Mistral, OpenRouter
    r"|context[ _-](?:length|size|window)[^.]{0,40}exceed"
    r"|exceed[^.]{0,60}context[ _-](?:length|size|window)"  # llama.cpp
    r"|(?:longer|greater|larger) than the (?:model'?s? )?(?:maximum )?(?:model|context)[ _-]length"  # SGLang, LM Studio
    r"|longer than the maximum model length"  # vLLM
    r"|exceeds? (?:the )?context limit"  # Anthropic, of prompt and max_tokens together
    r"|prompt is too long|input is too long|maximum prompt length"  # Anthropic, Bedrock, xAI
    r"|input token count[^.]{0,80}exceeds the maximum"  # Gemini
    r"|`?inputs`? (?:tokens \+ `?max_new_tokens`? )?must (?:be <=|have less than)"  # TGI, Together
    r"|reduce the length of the (?:messages|prompt|input)",  # Groq, OpenAI
    re.IGNORECASE,
)
_QUOTA_CODES = {
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
    "billing_error",
}
_QUOTA_WORDS = re.compile(
    r"exceeded your current quota|insufficient (?:account )?(?:balance|quota|credits?)"
    r"|credit balance is too low|billing",
    re.IGNORECASE,
)
_QUOTA_SPENT = "insufficient_quota: the quota at the model's provider is used up"
_SPENT = re.compile(r"credit balance is too low", re.IGNORECASE)
"""Anthropic says this with status 400."""
_UNKNOWN_MODEL_CODES = {"model_not_found", "model_not_available", "deploymentnotfound"}  # OpenAI, Together, Azure
_UNKNOWN_MODEL_WORDS = re.compile(
    r"\bmodel:? ?['\"`]?[\w./:@-]*['\"`]? ?(?:(?:does )?not exist|(?:is )?not found)"  # vLLM, Ollama, DeepSeek
    r"|not a valid model|invalid model|unknown model",  # OpenRouter, Mistral
    re.IGNORECASE,
)
_FILTER_CODES = {"content_filter", "content_policy_violation"}  # Azure, OpenAI
_STATUS_OF_TYPE = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "invalid_request_error": 400,
    "badrequesterror": 400,
    "not_found_error": 404,
    "context_length_exceeded": 400,
    "overloaded_error": 529,
    "api_error": 500,
    "timeout_error": 504,
    "billing_error": 402,
    "request_too_large": 413,
    "server_error": 500,
    "vector_store_timeout": 504,
    "invalid_prompt": 400,
    "bio_policy": 400,
    "misalignment_policy_violation": 400,
    "data_residency_mismatch": 400,
    **dict.fromkeys((*IMAGE_CODES, *_FILTER_CODES), 400),
}
_REFUSED_FIELD = re.compile(
    r"unsupported|not supported|unrecognized|unknown|unexpected|extra_forbidden|not (?:permitted|allowed|available)",
    re.IGNORECASE,
)


def error_of_response(
    status: int, body: bytes, retry_after_seconds: float | None = None, unchecked: Sequence[str] = ()
) -> ModelError:
    """Classify an answer with another status than 200.

    Of the caller's parameters that nobody but the provider checks, a rejection names the one that it speaks of.
    """
    error = _classify(status, *_read_error(body), retry_after_seconds)
    error.status = status
    named = next((name for name in unchecked if name.encode() in body), None)
    if type(error) is ModelRequestRejected and named is not None:
        error.message, error.param = f"{named}: {error.message}", named
    return error


def error_of_frame(frame: JsonObject) -> ModelError:
    """Classify an error object in a stream, or in an answer with status 200."""
    codes, message = _read_error_object(frame)
    status = next((int(code) for code in codes if re.fullmatch(r"[45]\d\d", code)), None)
    known = next((_STATUS_OF_TYPE[code] for code in codes if code in _STATUS_OF_TYPE), None)
    return _classify(status or known or 500, codes, message, None)


def find_refused_field(status: int, body: bytes, fields: tuple[str, ...]) -> str | None:
    """Return which of `fields` an answer with status 400 or 422 refuses as unknown; None for any other error."""
    if status not in (400, 422):
        return None
    text = body.decode("utf-8", errors="replace")
    if not _REFUSED_FIELD.search(text):
        return None
    places = [(re.search(rf"(?<!\w){re.escape(field)}(?!\w)", text), field) for field in fields]
    found = [(place.start(), -len(field), field) for place, field in places if place is not None]
    return min(found)[2] if found else None


def _classify(status: int, codes: set[str], message: str, wait: float | None) -> ModelError:
    if _names_unknown_model(status, codes, message):
        # A wrong base URL has the same effect, and the operator corrects it in the same place.
        return ModelUnknownToProvider(f"the model's provider does not know the configured model (status {status})")
    if status in (401, 403):
        return ModelAuthenticationFailed(f"the model's provider refuses the configured credential (status {status})")
    if codes & _QUOTA_CODES or status == 402 or _SPENT.search(message):
        return ModelQuotaExhausted(f"{_QUOTA_SPENT} (status {status})")
    if status == 429:
        return _too_many_requests(message, wait)
    if codes & _OVERFLOW_CODES or _OVERFLOW_WORDS.search(message):
        return ModelContextOverflow(f"{CONTEXT_EXCEEDED} shorter than the prompt (status {status})")
    if status >= 500 or status == 408:
        text = f"the model's provider failed (status {status})"
        return ModelUnavailable(text, retry_after_seconds=wait)
    if status >= 400:
        return _rejection(status, codes)
    return ModelProtocolViolated(f"the model's provider answered with something else (status {status})")


def _rejection(status: int, codes: set[str]) -> ModelError:
    if codes & _FILTER_CODES:
        return ModelContentFiltered(f"content_filter: the model's provider filters the request (status {status})")
    of_image = next((code for code in IMAGE_CODES if code in codes), None)
    if of_image is None:
        return ModelRequestRejected(f"the model's provider rejected the request (status {status})")
    error = ModelRequestRejected(f"{of_image}: the model's provider rejected an image (status {status})")
    error.code = of_image
    return error


def _names_unknown_model(status: int, codes: set[str], message: str) -> bool:
    in_words = status == 400 and _UNKNOWN_MODEL_WORDS.search(message) is not None
    return status == 404 or in_words or bool(codes & _UNKNOWN_MODEL_CODES)


def _too_many_requests(message: str, wait: float | None) -> ModelError:
    # Some providers mention a quota also where waiting helps; their answer then contains the time to wait.
    if wait is None and _QUOTA_WORDS.search(message):
        return ModelQuotaExhausted(f"{_QUOTA_SPENT} (status 429)")
    return ModelRateLimited("the model's provider asks to slow down (status 429)", retry_after_seconds=wait)


def _read_error(body: bytes) -> tuple[set[str], str]:
    try:
        parsed: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError:
        return set(), body.decode("utf-8", errors="replace")
    if isinstance(parsed, list) and parsed:  # Gemini wraps the error in a list
        parsed = parsed[0]
    return _read_error_object(parsed) if isinstance(parsed, dict) else (set(), str(parsed))


def _read_error_object(parsed: JsonObject) -> tuple[set[str], str]:
    error = parsed.get("error") or parsed
    if not isinstance(error, dict):
        return set(), str(error)
    codes = {str(error[name]).lower() for name in ("code", "type", "status") if error.get(name) is not None}
    message = error.get("message") or error.get("detail") or ""
    return codes, str(message)
