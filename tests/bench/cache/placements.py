"""What the two placements of an agent's project files cost: the same conversation, before each provider."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backend.conversations.domain.placed_blocks import ANCHORED, CLASSIC, AgentRef, PlacedBlocks, Placement
from shared.models.messages import ToolCall
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_SEARCH
from tests.bench.cache.conversations import Conversation, Settings, Step, Turn
from tests.bench.cache.layouts import DURABLE
from tests.bench.cache.measuring import Share, cached_shares
from tests.bench.cache.playing import Call, play
from tests.bench.cache.simulators import BYTES_A_TOKEN, SIMULATORS

ANCHORED_AT_LEAST = 0.98
TURNS = 20
FILES_TOKENS = 20_000
WINDOW_TOKENS = 1_000_000
_START = datetime(2026, 11, 20, 7, 30, tzinfo=UTC)
_WORDS = ("anchor", "ballast", "cargo", "ebb", "gale", "hull", "jetty", "mast", "quay", "tide")
PLACEMENTS: tuple[Placement, ...] = (ANCHORED, CLASSIC)


@dataclass(frozen=True)
class PlacementShare:
    """What a provider reads from its cache under a placement, and how much of all input tokens it reads anew."""

    share: Share
    unread: float


def placement_shares(seed: int) -> Mapping[tuple[str, Placement], PlacementShare]:
    """Play 20 turns with 20k tokens of project files in both placements, before every simulator."""
    shares: dict[tuple[str, Placement], PlacementShare] = {}
    for placement in PLACEMENTS:
        calls = play(_conversation(seed, placement), DURABLE).calls
        whole = sum(map(_tokens, calls))
        for name, simulator in SIMULATORS.items():
            share = sum(cached_shares(calls, simulator), Share())
            shares[name, placement] = PlacementShare(share, 1 - share.cached / whole)
    return shares


def missed_placements(shares: Mapping[tuple[str, Placement], PlacementShare]) -> list[str]:
    """Say before which provider `anchored` is below its bar."""
    return [
        f"{name}: anchored at {one.share.value:.4f} with {FILES_TOKENS} tokens of project files"
        for (name, placement), one in shares.items()
        if placement == ANCHORED and one.share.value < ANCHORED_AT_LEAST
    ]


def render_placements(shares: Mapping[tuple[str, Placement], PlacementShare]) -> str:
    """Render a row for each placement and provider."""
    title = f"An agent with {FILES_TOKENS:,} tokens of project files, {TURNS} turns: the share of what could be read "
    lines = [f"{title}from the cache, and of all input what is read anew."]
    for (name, placement), one in shares.items():
        lines.append(f"  {name:<14} {placement:<9} {one.share.value:.4f}  anew {one.unread:6.1%}")
    return "\n".join(lines)


def _conversation(seed: int, placement: Placement) -> Conversation:
    """Make a conversation in which nothing changes: up to two searches, then an answer, in each turn."""
    rng = random.Random(seed)
    placed = PlacedBlocks(
        instructions=_text(rng, 2_000),
        project_files=_text(rng, FILES_TOKENS * BYTES_A_TOKEN),
        placement=placement,
        agent=AgentRef(name="helper", id="agent_1"),
    )
    settings = Settings(model="model-a", instructions="", functions=(), is_restricted=False)
    turns = [
        Turn(
            id=f"turn_{number}",
            after=f"turn_{number - 1}" if number else None,
            settings=settings,
            bindings=(),
            blocks=(),
            user=_text(rng, 400),
            sent_at=_START + timedelta(minutes=number),
            steps=_steps(rng, number),
            placed=placed,
        )
        for number in range(TURNS)
    ]
    return Conversation(seed, WINDOW_TOKENS, tuple(turns))


def _steps(rng: random.Random, turn: int) -> tuple[Step, ...]:
    searches = [
        Step(
            text="",
            calls=(ToolCall(call_id=f"call_{turn}_{number}", name=KNOWLEDGE_BASE_SEARCH, arguments="{}"),),
            results=(_text(rng, 4_000),),
        )
        for number in range(rng.choice((0, 0, 1, 2)))
    ]
    return (*searches, Step(text=_text(rng, 1_500)))


def _text(rng: random.Random, characters: int) -> str:
    words = "".join(f"{rng.choice(_WORDS)} " for _ in range(characters // 4))
    return words[:characters].strip()


def _tokens(call: Call) -> int:
    return sum(map(len, call.sent.parts)) // BYTES_A_TOKEN
