"""Parts that answer, or do not."""

from shared.errors import Unavailable


class FakeProbe:
    """Answers until it is set to be away."""

    def __init__(self) -> None:
        self.away = False

    async def check_writable(self) -> None:
        """Take the write, or raise."""
        if self.away:
            raise Unavailable("The database does not answer.")


class FakePresence:
    """Is there until it is set to be away."""

    def __init__(self, *, is_away: bool = False) -> None:
        self.is_away = is_away
