"""Moderations in OpenAI's words, made by the operator's moderation model."""

from typing import Annotated, Literal, cast

import orjson
from fastapi import Depends, Response
from pydantic import BaseModel, Discriminator, Field, Tag

from backend.embeddings.services.moderations import Moderations
from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import RequestBody
from backend.identity.http.caller import CallerDep

ModerationsDep = Annotated[Moderations, Depends(service_of(Moderations))]
router = new_router("Moderations")


class ModeratedText(RequestBody):
    """A text among parts."""

    type: Literal["text"]
    text: str


class ModeratedImageAddress(RequestBody):
    """Where an image is, or the image itself."""

    url: Annotated[str, Field(min_length=1)]


class ModeratedImage(RequestBody):
    """An image among parts."""

    type: Literal["image_url"]
    image_url: ModeratedImageAddress


def _kind_of(value: object) -> str:
    if not isinstance(value, list):
        return "text"
    return "parts" if any(isinstance(each, dict | BaseModel) for each in cast(list[object], value)) else "texts"


ModeratedPart = Annotated[ModeratedText | ModeratedImage, Field(discriminator="type")]


class CreateModeration(RequestBody):
    """What is to be judged."""

    input: Annotated[
        Annotated[str, Tag("text")] | Annotated[list[str], Tag("texts")] | Annotated[list[ModeratedPart], Tag("parts")],
        Discriminator(_kind_of),
    ]
    model: Annotated[str, Field(min_length=1, max_length=256)] | None = None


class ModerationResult(BaseModel):
    """What the model says of one input."""

    flagged: bool
    categories: dict[str, bool]
    category_scores: dict[str, float]
    category_applied_input_types: dict[str, list[str]] | None = None


class ModerationAnswer(BaseModel):
    """The answer of the provider, as it gave it."""

    id: str
    model: str
    results: list[ModerationResult]


@router.post(
    "/v1/moderations",
    summary="Create a moderation",
    response_class=Response,
    responses={200: {"model": ModerationAnswer, "description": "What the moderation model says of each input"}},
)
async def create_moderation(wanted: CreateModeration, moderations: ModerationsDep, caller: CallerDep) -> Response:
    """Return what the operator's moderation model says of texts and images; nothing of them is kept."""
    answer = await moderations.judge(caller, wanted.model, wanted.model_dump()["input"])
    return Response(orjson.dumps(answer), media_type="application/json")
