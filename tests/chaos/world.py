"""What all actors of a load share: who they are, what they talk about, and the notes of what they saw."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from tests.chaos.clients import Caller, Tally
from tests.chaos.records import Register, Turn

PAUSE_SECONDS = (0.1, 0.5)


@dataclass
class World:
    """One load; `stopped` tells all actors to end after what they are at."""

    urls: Mapping[str, str]
    keys: Mapping[str, str]
    bases: Mapping[str, str]
    seed: int
    tally: Tally = field(default_factory=Tally)
    turns: list[Turn] = field(default_factory=list[Turn])
    registers: list[Register] = field(default_factory=list[Register])
    conversations: dict[str, str] = field(default_factory=dict[str, str])
    hung: list[str] = field(default_factory=list[str])
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: "count[int]" = field(default_factory=count)

    def caller(self, user: str) -> Caller:
        """Return a caller for this user, to be closed."""
        return Caller(self.urls, self.keys[user], self.tally)

    def dice(self, actor: str) -> random.Random:
        """Return the actor's own dice."""
        return random.Random(f"{self.seed} {actor}")

    def next_number(self) -> int:
        """Return a number that nothing else of this world has."""
        return next(self._numbers)

    def new_turn(self, kind: str, conversation: str = "") -> Turn:
        """Note a turn, which gets a key of its own."""
        turn = Turn(f"t{self.next_number()}", kind, conversation)
        self.turns.append(turn)
        return turn

    def register(self, path: str) -> Register:
        """Note a place that is going to be written to."""
        register = Register(path)
        self.registers.append(register)
        return register

    async def pause(self, dice: random.Random) -> None:
        """Wait a moment."""
        await asyncio.sleep(dice.uniform(*PAUSE_SECONDS))
