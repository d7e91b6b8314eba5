"""Models on offer."""

from protos.execution.v1 import chat_shell_pb2 as pb
from shared.models.events import ModelCard
from shared.wire.values import unwritable


def card_to_proto(card: ModelCard) -> pb.ModelCard:
    """Write a model's card."""
    try:
        return pb.ModelCard(
            name=card.name,
            context_window_tokens=card.context_window_tokens,
            max_output_tokens=card.max_output_tokens,
        )
    except ValueError as error:
        raise unwritable(card) from error


def card_from_proto(card: pb.ModelCard) -> ModelCard:
    """Read a model's card."""
    return ModelCard(
        name=card.name,
        context_window_tokens=card.context_window_tokens,
        max_output_tokens=card.max_output_tokens,
    )
