"""The models that a request names: one, or several that answer it each by itself."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from shared.errors import InvalidRequest

MAX_MODELS = 3
"""Each model of a request takes a place for turns, and pays for the whole prompt."""

ModelName = Annotated[str, Field(min_length=1, max_length=256)]
SeveralModels = Annotated[list[ModelName], Field(min_length=1, max_length=MAX_MODELS, fail_fast=True)]


def check_models(
    model: str | None, models: Sequence[str] | None, if_running: str | None = None
) -> Mapping[str, object]:
    """Return the fields `model` and `models` of a request that go together; a single one of `models` is the `model`.

    Raises:
        InvalidRequest: a model is named twice, `model` is not the first of `models`, or several would have to wait for
            a running turn; `param` names the place.
    """
    if not models:
        return {}
    for place, name in enumerate(models):
        if name in models[:place]:
            message = f"The model '{name}' is named twice; name each model once."
            raise InvalidRequest(message, param=f"models[{place}]")
    if len(models) > 1 and if_running is not None:
        message = "Several models do not wait for a running turn; leave this field out, or name one model."
        raise InvalidRequest(message, param="if_running")
    if model not in (None, models[0]):
        message = f"Leave this field out, or give '{models[0]}', the first of 'models'."
        raise InvalidRequest(message, param="model")
    return {"model": models[0], "models": list(models) if len(models) > 1 else None}
