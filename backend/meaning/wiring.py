"""What searches by meaning, built from what the operator has set up."""

from backend.meaning.ports import MeaningPorts
from backend.meaning.services.absent import NO_MEANING


def build_meaning_room() -> MeaningPorts:
    """Build the room."""
    return NO_MEANING
