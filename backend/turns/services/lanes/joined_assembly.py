"""Building the response that joins lanes, and what is stored of it and of them before they run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backend.conversations.domain.item_bodies import RESULTS
from backend.conversations.domain.responses import JOINED_IN, Conversation, ItemBody, NewTurn, StoredResponse
from backend.foundation.domain.idempotency import KeyClaim
from backend.knowledge.domain.labels import join_labels
from backend.openai_api.domain.response_object import ResponseBody
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.lanes import JoinedPlan, Lane, lane_body, main_lane
from backend.turns.domain.turn import JoinedTurn, Turn
from shared.ids import IdPrefix, new_id
from shared.models.values import JsonObject


@dataclass(frozen=True)
class JoinedAssembly:
    """The lanes and the joined response that are to run, and the records of all, that of the joined one first."""

    joined: JoinedTurn
    lanes: tuple[Turn, ...]
    records: tuple[NewTurn, ...]

    def add_claim(self, claim: KeyClaim | None) -> tuple[NewTurn, ...]:
        """Return the records, in which a claim has created the joined response."""
        own = claim.of(self.joined.response.id) if claim is not None else None
        return (self.records[0]._replace(claim=own), *self.records[1:])


def join_assembled(
    response_id: str, lanes: Sequence[tuple[Turn, NewTurn]], asked: TurnRequest, before: ResponseBody | None
) -> JoinedAssembly:
    """Build the joined response of assembled turns, with the settings of the first one.

    `before` is the joined response whose lanes go on. The joined response holds a conversation of its own without a
    log: so it is stored, held and taken over as any other turn, while its lanes hold theirs.
    """
    turns = tuple(_in_joined(turn, response_id) for turn, _ in lanes)
    conversation = _own_conversation(lanes[0][1].conversation, response_id)
    response = _response(turns, conversation, asked, before)
    with_results = all(turn.with_results for turn in turns)
    record = NewTurn(
        conversation=conversation,
        expected_log_length=None,
        response=response,
        entries=(),
        items=(),
        plan=JoinedPlan(with_results=with_results).model_dump_json(),
    )
    joined = JoinedTurn(
        response=response,
        lanes=tuple(turn.response for turn in turns),
        is_stored=turns[0].is_stored,
        with_results=with_results,
    )
    stored = [new._replace(response=turn.response) for turn, (_, new) in zip(turns, lanes, strict=True)]
    return JoinedAssembly(joined, turns, (record, *stored))


def _in_joined(turn: Turn, response_id: str) -> Turn:
    """Let the response of a lane name the joined one."""
    body = {**turn.response.body, JOINED_IN: response_id}
    response = turn.response.model_copy(update={"body": body})
    return replace(turn, record=turn.record.model_copy(update={"response": response}))


def _own_conversation(first: Conversation, response_id: str) -> Conversation:
    changes: dict[str, object] = {
        "id": new_id(IdPrefix.CONVERSATION),
        "metadata": {},
        "members": None,
        "log_length": 0,
        "epoch": 0,
        "running_response_id": response_id,
        "latest_response_id": response_id,
        "sent": None,
        "preset_use": None,
    }
    return first.model_copy(update=changes)


def _response(
    turns: Sequence[Turn], conversation: Conversation, asked: TurnRequest, before: ResponseBody | None
) -> StoredResponse:
    first = turns[0].response
    lanes = [
        Lane(
            model=str(turn.response.body["model"]),
            response_id=turn.response.id,
            conversation_id=turn.response.conversation_id if turn.is_stored else None,
        )
        for turn in turns
    ]
    body = {key: value for key, value in first.body.items() if key != JOINED_IN}
    changes = {
        "id": conversation.running_response_id,
        "conversation_id": conversation.id,
        "body": {
            **body,
            "id": conversation.running_response_id,
            "conversation": _show_conversation(lanes, before),
            "previous_response_id": asked.previous_response_id,
            "metadata": dict(asked.with_collected().metadata or {}),
            "lanes": [lane_body(lane, None) for lane in lanes],
        },
        "input_items": _input_items([turn.response for turn in turns]),
        "label": join_labels([label for turn in turns for label in turn.response.label]),
        "preset_use": None,
        "ran_with": None,
    }
    return first.model_copy(update=changes)


def _input_items(lanes: Sequence[StoredResponse]) -> tuple[ItemBody, ...]:
    """Return the input of all lanes: they differ in the results of calls, of which each has got its own."""
    first, *others = lanes
    results = [item for lane in others for item in lane.input_items if item["type"] in RESULTS]
    known = {str(item.get("call_id")) for item in first.input_items}
    return (*first.input_items, *(item for item in results if str(item["call_id"]) not in known))


def _show_conversation(lanes: Sequence[Lane], before: ResponseBody | None) -> JsonObject | None:
    """Return the conversation of the joined response: that of the joined response before, where a lane runs in it."""
    main = main_lane(before) if before is not None else None
    ids = [lane.conversation_id for lane in lanes]
    shown = main.conversation_id if main is not None and main.conversation_id in ids else ids[0]
    return {"id": shown} if shown is not None else None
