"""What the two placements of an agent's words cost: the same conversation, before each provider."""

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
from tests.bench.cache.simulators import BYTES_A_TOKEN, SIMULATORS, Breakpoint

ANCHORED_AT_LEAST = 0.98
REMINDED_AT_LEAST: Mapping[Placement, float] = {ANCHORED: 0.95, CLASSIC: 0.80}
COST_AT_MOST = 0.40
READ_FACTOR, WRITE_FACTOR = 0.1, 1.25
"""What a token costs that is read from the cache, and one that is written, of the price without a cache."""

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


@dataclass(frozen=True)
class ReminderShare:
    """What an agent with a reminder reads from a provider's cache, and what share of the price its input costs."""

    share: Share
    cost: float


def reminder_shares(seed: int) -> Mapping[Placement, ReminderShare]:
    """Play 20 turns with a reminder in both placements, before a provider that finds a prefix at breakpoints only."""
    shares: dict[Placement, ReminderShare] = {}
    for placement in PLACEMENTS:
        calls = play(_conversation(seed, placement, files_tokens=0), DURABLE).calls
        each = cached_shares(calls, Breakpoint)
        paid = sum(_paid(call, share.cached) for call, share in zip(calls, each, strict=True))
        shares[placement] = ReminderShare(sum(each, Share()), paid / sum(map(_tokens, calls)))
    return shares


def missed_reminders(shares: Mapping[Placement, ReminderShare]) -> list[str]:
    """Say under which placement an agent with a reminder reads too little, or pays too much."""
    return [
        f"breakpoint: a reminder under {placement} reads {one.share.value:.4f} and costs {one.cost:.2f}"
        for placement, one in shares.items()
        if one.share.value < REMINDED_AT_LEAST[placement] or one.cost > COST_AT_MOST
    ]


def render_reminders(shares: Mapping[Placement, ReminderShare]) -> str:
    """Render a row for each placement."""
    lines = [f"An agent with a reminder, {TURNS} turns, before a provider that finds a prefix at breakpoints only."]
    for placement, one in shares.items():
        lines.append(f"  {placement:<9} {one.share.value:.4f}  cost {one.cost:.2f} of the price without a cache")
    return "\n".join(lines)


def _paid(call: Call, cached: int) -> float:
    """Return what the tokens of a call cost, in tokens at the full price."""
    written = Breakpoint().whole_tokens(call.sent)
    return READ_FACTOR * cached + WRITE_FACTOR * (written - cached) + _tokens(call) - written


def _conversation(seed: int, placement: Placement, files_tokens: int = FILES_TOKENS) -> Conversation:
    """Make a conversation in which nothing changes: up to two searches, then an answer, in each turn.

    Its agent has instructions and project files, or a reminder alone.
    """
    rng = random.Random(seed)
    placed = PlacedBlocks(
        instructions=_text(rng, 2_000) if files_tokens else "",
        project_files=_text(rng, files_tokens * BYTES_A_TOKEN),
        placement=placement,
        agent=AgentRef(name="helper", id="agent_1"),
        reminder="" if files_tokens else _text(rng, 400),
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
