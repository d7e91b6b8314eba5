"""Lanes: the models that answer one request, each in a response of its own, and the joined response that shows all.

The choices of a chat completion are lanes of the same model.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from backend.conversations.domain.input_items import FunctionCallOutputItem
from backend.conversations.domain.item_bodies import CALLS
from backend.conversations.domain.responses import JOINED_IN
from backend.openai_api.domain.response_object import ResponseBody
from backend.openai_api.domain.turn_request import TurnRequest
from shared.errors import InvalidRequest
from shared.models.values import JsonObject, JsonValue, Value, objects_in


class Lane(Value):
    """One model of a joined response: its name as the caller gave it, and where it answers.

    `conversation_id` is None where the turn is not stored.
    """

    model: str
    response_id: str
    conversation_id: str | None


class JoinedPlan(Value):
    """What is stored of a joined response, so that another process can go on with it; see `StoredRecord`."""

    with_results: bool


class LaneRequest(NamedTuple):
    """The request of one model, and the place among the models at whose origin it branches off; None where it does not.

    A branch begins with the same bytes as the model that it branches off from.
    """

    request: TurnRequest
    branches_off: int | None


def lanes_in(body: ResponseBody) -> tuple[Lane, ...]:
    """Return the lanes of a joined response; none of any other."""
    return tuple(
        Lane(
            model=str(each["model"]),
            response_id=str(each["response_id"]),
            conversation_id=cast("str | None", each["conversation_id"]),
        )
        for each in objects_in(body.get("lanes") or [])
    )


def read_joined_response_id(body: ResponseBody) -> str | None:
    """Return the joined response in which a lane's response is shown."""
    found = body.get(JOINED_IN)
    return found if isinstance(found, str) else None


def lane_body(lane: Lane, ended: ResponseBody | None) -> JsonObject:
    """Return a lane as the joined response shows it; `ended` is the lane's response once it has ended."""
    found: Mapping[str, JsonValue] = ended or {}
    return {
        "model": lane.model,
        "response_id": lane.response_id,
        "conversation_id": lane.conversation_id,
        "status": found.get("status", "in_progress"),
        "error": found.get("error"),
        "incomplete_details": found.get("incomplete_details"),
        "usage": found.get("usage"),
    }


def lane_to_continue(body: ResponseBody, model: str | None) -> Lane | None:
    """Return the lane in which one model goes on behind a joined response: its own, else the main one."""
    lanes = lanes_in(body)
    return next((lane for lane in lanes if lane.model == model), main_lane(body))


def main_lane(body: ResponseBody) -> Lane | None:
    """Return the lane that runs in the conversation which a joined response shows as its own."""
    lanes = lanes_in(body)
    shown = cast("dict[str, str] | None", body.get("conversation"))
    here = (lane for lane in lanes if shown is not None and lane.conversation_id == shown["id"])
    return next(here, lanes[0] if lanes else None)


def lane_requests(request: TurnRequest, before: ResponseBody | None) -> tuple[LaneRequest, ...]:
    """Return what each model of a request is asked.

    Behind a joined response, `before`, each model goes on in its own lane; one that has none takes the main lane where
    no other does, and branches off from the main lane otherwise. Without a joined response before it, the first model
    goes on where the request says, and the others branch off there.

    Raises:
        InvalidRequest: the input answers calls of some models, and has nothing for another.
    """
    names = request.models or ()
    own = _lanes_by_place(names, before) if before is not None else {}
    root = next(iter(own), 0)
    if before is not None:
        main = main_lane(before)
        root = next((place for place, lane in own.items() if lane == main), root)
    return tuple(
        LaneRequest(_ask_behind(request, name, own[place], before), None)
        if before is not None and place in own
        else LaneRequest(_ask_model(request, name), None if place == root else root)
        for place, name in enumerate(names)
    )


def _lanes_by_place(names: Sequence[str], before: ResponseBody) -> dict[int, Lane]:
    # Of several lanes of one model, which are the choices of a chat completion, the first goes on.
    lanes = {lane.model: lane for lane in reversed(lanes_in(before))}
    own = {place: lanes[name] for place, name in enumerate(names) if name in lanes}
    main = main_lane(before)
    new = next((place for place in range(len(names)) if place not in own), None)
    if main is not None and new is not None and main not in own.values():
        own[new] = main
    return own


def _ask_model(request: TurnRequest, model: str) -> TurnRequest:
    return request.model_copy(update={"models": None, "model": model})


def _ask_behind(request: TurnRequest, model: str, lane: Lane, before: ResponseBody) -> TurnRequest:
    """Return the request that goes on behind a lane's response, without what answers the calls of other lanes."""
    changes: dict[str, object] = {"conversation": None, "previous_response_id": lane.response_id}
    if not isinstance(request.input, str):
        calls = [item for item in objects_in(before["output"]) if item["type"] in CALLS]
        own = {str(item["call_id"]) for item in calls if item.get("response_id") == lane.response_id}
        foreign = {str(item["call_id"]) for item in calls} - own
        left = [
            item
            for item in request.input
            if not isinstance(item, FunctionCallOutputItem) or item.call_id not in foreign
        ]
        if not left:
            message = f"The input answers no call of the model '{model}'; name only models that it has something for."
            raise InvalidRequest(message, param="models")
        changes["input"] = left
    return _ask_model(request, model).model_copy(update=changes)
