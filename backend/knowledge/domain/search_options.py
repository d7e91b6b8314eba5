"""What a caller asks of the searches in his bases."""

from shared.models.values import Value


class SearchOptions(Value):
    """Bounds on what one search brings; None leaves it to us.

    `min_score` is compared with the score that results show, between 0 and 1.
    """

    max_results: int | None = None
    min_score: float | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether a search must rank: a whole base, which no one ranked, would be too much."""
        return self.max_results is not None or bool(self.min_score)
