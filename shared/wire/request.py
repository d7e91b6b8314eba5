"""Convert an `ExecutionRequest` to a protobuf message, and back."""

from pydantic import ValidationError

from protos.execution.v1 import request_pb2 as pb
from shared.models.execution import (
    AccessMode,
    DynamicBlock,
    ExecutionRequest,
    Knowledge,
    KnowledgeBaseRef,
    Purpose,
    TurnLimits,
    User,
)
from shared.models.invalid_fields import refusal_of
from shared.wire.messages import (
    content_from_proto,
    messages_from_proto,
    turn_messages_from_proto,
    write_content,
    write_messages,
)
from shared.wire.parameters import parameters_from_proto, parameters_to_proto
from shared.wire.tools import served_from_proto, served_to_proto, tool_from_proto, tool_to_proto
from shared.wire.values import (
    instant_from_proto,
    instant_to_proto,
    known,
    require,
    scalar_fields,
    unwritable,
)

ACCESS_MODE_TO_PROTO = {mode: pb.AccessMode.Value(f"ACCESS_MODE_{mode.name}") for mode in AccessMode}
ACCESS_MODE_FROM_PROTO = {
    pb.ACCESS_MODE_UNSPECIFIED: AccessMode.RESTRICTED,
    **{number: mode for mode, number in ACCESS_MODE_TO_PROTO.items()},
}
PURPOSE_FROM_PROTO = {
    pb.PURPOSE_UNSPECIFIED: Purpose.ANSWER,
    pb.PURPOSE_ANSWER: Purpose.ANSWER,
    pb.PURPOSE_SUMMARY: Purpose.SUMMARY,
}
PURPOSE_TO_PROTO = {Purpose.ANSWER: pb.PURPOSE_UNSPECIFIED, Purpose.SUMMARY: pb.PURPOSE_SUMMARY}
REQUIRED_MESSAGES = ("user", "parameters", "knowledge", "limits")


def request_to_proto(request: ExecutionRequest) -> pb.ExecutionRequest:
    """Convert a request to a protobuf message.

    Raises:
        InvalidRequest: a text holds a lone surrogate, or a value cannot be written as JSON.
    """
    try:
        written = pb.ExecutionRequest(
            request_id=request.request_id,
            conversation_id=request.conversation_id,
            turn_id=request.turn_id,
            epoch=request.epoch,
            user=pb.User(**dict(request.user)),
            model=request.model,
            parameters=parameters_to_proto(request.parameters),
            system_prompt=request.system_prompt,
            kb_meta_prompt=request.kb_meta_prompt,
            dynamic_blocks=[pb.DynamicBlock(name=block.name, text=block.text) for block in request.dynamic_blocks],
            sent_at=instant_to_proto(request.sent_at),
            time_zone=request.time_zone,
            knowledge=_knowledge_to_proto(request.knowledge),
            tools=[tool_to_proto(tool, f"tools[{index}]") for index, tool in enumerate(request.tools)],
            limits=pb.TurnLimits(**dict(request.limits)),
            cache_key=request.cache_key,
            deadline=instant_to_proto(request.deadline),
            reminder=request.reminder,
            purpose=PURPOSE_TO_PROTO[request.purpose],
            reads_files=request.reads_files,
            served_tools=served_to_proto(request.served_tools, "served_tools"),
        )
        if request.prompt is not None:
            write_content(request.prompt, written.prompt)
        write_messages(request.history, written.history.add)
        write_messages(request.added, written.added.add)
    except ValueError as error:
        raise unwritable(request) from error
    return written


def request_from_proto(request: pb.ExecutionRequest) -> ExecutionRequest:
    """Read a request from a protobuf message.

    Raises:
        InvalidRequest: a value is missing or malformed; `param` names it.
    """
    for field in REQUIRED_MESSAGES:
        require(request.HasField(field), field)
    prompt = content_from_proto(request.prompt, "prompt") if request.HasField("prompt") else None
    try:
        return ExecutionRequest(
            request_id=request.request_id,
            conversation_id=request.conversation_id,
            turn_id=request.turn_id,
            epoch=request.epoch,
            user=User.model_validate(scalar_fields(request.user)),
            model=request.model,
            parameters=parameters_from_proto(request.parameters),
            system_prompt=request.system_prompt,
            history=messages_from_proto(request.history, "history"),
            kb_meta_prompt=request.kb_meta_prompt,
            dynamic_blocks=tuple(DynamicBlock(name=one.name, text=one.text) for one in request.dynamic_blocks),
            prompt=prompt,
            sent_at=instant_from_proto(request, "sent_at"),
            time_zone=request.time_zone,
            knowledge=_knowledge_from_proto(request.knowledge),
            tools=tuple(tool_from_proto(tool, f"tools[{index}]") for index, tool in enumerate(request.tools)),
            limits=_limits_from_proto(request.limits),
            cache_key=request.cache_key,
            deadline=instant_from_proto(request, "deadline"),
            added=turn_messages_from_proto(request.added, "added"),
            reminder=request.reminder,
            purpose=known(PURPOSE_FROM_PROTO, request.purpose, "purpose"),
            reads_files=request.reads_files,
            served_tools=served_from_proto(request.served_tools, "served_tools"),
        )
    except ValidationError as error:
        raise refusal_of(error) from error


def _knowledge_to_proto(knowledge: Knowledge) -> pb.Knowledge:
    bases = [
        pb.KnowledgeBaseRef(id=base.id, name=base.name, access_mode=ACCESS_MODE_TO_PROTO[base.access_mode])
        for base in knowledge.bases
    ]
    return pb.Knowledge(
        bases=bases,
        access_mode=ACCESS_MODE_TO_PROTO[knowledge.access_mode],
        ticket=knowledge.ticket,
        user_words=knowledge.user_words,
    )


def _knowledge_from_proto(knowledge: pb.Knowledge) -> Knowledge:
    bases = tuple(_base_from_proto(base, f"knowledge.bases[{index}]") for index, base in enumerate(knowledge.bases))
    mode = known(ACCESS_MODE_FROM_PROTO, knowledge.access_mode, "knowledge.access_mode")
    if any(base.access_mode == pb.ACCESS_MODE_UNSPECIFIED for base in knowledge.bases):
        mode = AccessMode.RESTRICTED
    try:
        return Knowledge(bases=bases, access_mode=mode, ticket=knowledge.ticket, user_words=knowledge.user_words)
    except ValidationError as error:
        raise refusal_of(error, "knowledge") from error


def _base_from_proto(base: pb.KnowledgeBaseRef, place: str) -> KnowledgeBaseRef:
    mode = known(ACCESS_MODE_FROM_PROTO, base.access_mode, f"{place}.access_mode")
    return KnowledgeBaseRef(id=base.id, name=base.name, access_mode=mode)


def _limits_from_proto(limits: pb.TurnLimits) -> TurnLimits:
    try:
        return TurnLimits.model_validate(scalar_fields(limits))
    except ValidationError as error:
        raise refusal_of(error, "limits") from error
