"""How much of what could have come from the cache did come from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench.cache.conversations import Conversation
from tests.bench.cache.layouts import BASELINES, DURABLE, LAYOUTS, Layout
from tests.bench.cache.playing import Call, play
from tests.bench.cache.simulators import SIMULATORS, Simulator

DURABLE_AT_LEAST = 0.99
"""On every conversation in which nothing is reset."""

BASELINE_NAMES = frozenset(layout.name for layout in BASELINES)


@dataclass(frozen=True)
class Share:
    """Tokens that were read from a cache, of those that could be at most."""

    cached: int = 0
    maximum: int = 0

    @property
    def value(self) -> float:
        """Return the share; 1 where nothing could be read."""
        return self.cached / self.maximum if self.maximum else 1.0

    def __add__(self, other: "Share") -> "Share":
        return Share(self.cached + other.cached, self.maximum + other.maximum)


Key = tuple[str, str]
"""A simulator's name and a layout's."""


@dataclass(frozen=True)
class Measured:
    """The shares of a conversation."""

    seed: int
    has_reset: bool
    narrows_access: bool
    shares: Mapping[Key, Share]

    def share(self, simulator: str, layout: Layout) -> float:
        """Return one of them."""
        return self.shares[simulator, layout.name].value


def measured(conversation: Conversation) -> Measured:
    """Play a conversation in every layout, before every simulator."""
    shares: dict[Key, Share] = {}
    has_reset = False
    for layout in LAYOUTS.values():
        played = play(conversation, layout)
        has_reset = has_reset or (layout is DURABLE and played.has_reset)
        for name, simulator in SIMULATORS.items():
            shares[name, layout.name] = cached_share(played.calls, simulator)
    return Measured(conversation.seed, has_reset, conversation.narrows_access, shares)


def cached_share(calls: Sequence[Call], simulator: type[Simulator]) -> Share:
    """Let a provider answer calls. Each model has a cache of its own; the most that a call can read is the call before.

    That is 0 for a first call.
    """
    caches = {model: simulator() for model in {call.model for call in calls}}
    total = Share()
    for call in calls:
        cache = caches[call.model]
        maximum = 0 if call.before is None else cache.whole_tokens(calls[call.before].sent)
        total += Share(cache.cached_tokens(call.sent), maximum)
    return total


def totals(results: Sequence[Measured]) -> dict[Key, Share]:
    """Add the shares of conversations up."""
    added: dict[Key, Share] = {}
    for result in results:
        for key, share in result.shares.items():
            added[key] = added.get(key, Share()) + share
    return added


def missed_bars(results: Sequence[Measured]) -> list[str]:
    """Say where `durable` is below its bar, or a baseline above it, a line for each; none where all is met."""
    complaints = [complaint for result in results for complaint in _missed_by(result)]
    comparable = totals([result for result in results if not result.narrows_access])
    for (simulator, layout), share in comparable.items():
        if layout in BASELINE_NAMES and share.value >= comparable[simulator, DURABLE.name].value:
            complaints.append(f"in total, {simulator}: {layout} is not below durable")
    return complaints


def _missed_by(result: Measured) -> list[str]:
    complaints: list[str] = []
    for simulator in SIMULATORS:
        own = result.share(simulator, DURABLE)
        if not result.has_reset and own < DURABLE_AT_LEAST:
            complaints.append(f"seed {result.seed}, {simulator}: durable at {own:.4f} without a reset")
        if result.narrows_access:
            continue
        for baseline in BASELINES:
            other = result.share(simulator, baseline)
            if other > own:
                complaints.append(f"seed {result.seed}, {simulator}: {baseline.name} at {other:.4f}, durable {own:.4f}")
    return complaints
