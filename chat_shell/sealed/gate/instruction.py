"""Check `instruction`: nothing addressed to a model; orders about the work to people are welcome."""

from shared.plain_text.orders import is_order_to_model


def is_instruction(text: str) -> bool:
    """Tell whether a text speaks to a model, names a tool or uses the frame of a chat."""
    return is_order_to_model(text)
