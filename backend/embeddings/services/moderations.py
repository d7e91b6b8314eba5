"""Judgements of texts and images, for callers who want to know what a moderation model says of them."""

from backend.embeddings.domain import ModerationInput
from backend.embeddings.ports import Moderator
from backend.embeddings.services.embeddings import check_texts
from backend.foundation.services.admission import Admission
from backend.identity.domain import Caller
from backend.identity.services import holders_of
from shared.errors import NotFound, UnknownModel
from shared.models.values import JsonObject

_IMAGE = "image"


class Moderations:
    """Asks the operator's moderation model, whose name is `model`; None where there is none."""

    def __init__(self, moderator: Moderator | None, model: str, admission: Admission) -> None:
        self._moderator = moderator
        self._model = model
        self._admission = admission

    async def judge(self, caller: Caller, model: str | None, given: ModerationInput) -> JsonObject:
        """Return what the model says, in OpenAI's form; the request takes the place of a turn.

        Raises:
            NotFound: there is no moderation model.
            UnknownModel: it has another name.
            InvalidRequest: a text is empty, or there are too many or too long ones.
            Unavailable: it is away, or this process takes nothing new. Retryable.
            TooManyRequests: the caller holds as much as one caller may. Retryable.
            ModelRequestRejected: it refuses the input.
        """
        moderator = self._check(model)
        check_texts(_texts_of(given))
        self._admission.check_open()
        with self._admission.place(*holders_of(caller)):
            return await moderator.judge(given)

    def _check(self, model: str | None) -> Moderator:
        if self._moderator is None:
            told = "its operator sets a provider with BACKEND_MODERATION_BASE_URL and BACKEND_MODERATION_MODEL"
            raise NotFound(f"This server moderates nothing: {told}.")
        if model not in (None, self._model):
            raise UnknownModel(f"There is no moderation model '{model}'; use '{self._model}'.", param="model")
        return self._moderator


def _texts_of(given: ModerationInput) -> list[str]:
    """Return the texts at their places; an image stands there as a word."""
    inputs = [given] if isinstance(given, str) else given
    return [each if isinstance(each, str) else str(each.get("text", _IMAGE)) for each in inputs]
