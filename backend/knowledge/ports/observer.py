"""What an operator watches of knowledge bases."""

from typing import Protocol


class DescriptionObserver(Protocol):
    """Told what of descriptions is kept from restricted members; must not raise and must not block."""

    def texts_left_out(self, base_id: str, count: int) -> None:
        """So many of a base's hint and keywords tell of its content, or give orders to a model."""
        ...
