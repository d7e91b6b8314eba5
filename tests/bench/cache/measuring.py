"""How much of what could have come from the cache did come from it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from backend.conversations.domain.conversation_log import EpochReason
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
    """The shares of a conversation, and those of its resets alone: of the calls that begin an epoch."""

    seed: int
    resets: tuple[EpochReason, ...]
    narrows_access: bool
    shares: Mapping[Key, Share]
    at_resets: Mapping[Key, Share]

    def within_epochs(self, simulator: str, layout: Layout) -> float:
        """Return the share of the calls that go on in their epoch."""
        key = simulator, layout.name
        whole, reset = self.shares[key], self.at_resets[key]
        return Share(whole.cached - reset.cached, whole.maximum - reset.maximum).value


def measured(conversation: Conversation) -> Measured:
    """Play a conversation in every layout, before every simulator."""
    shares: dict[Key, Share] = {}
    at_resets: dict[Key, Share] = {}
    resets: tuple[EpochReason, ...] = ()
    for layout in LAYOUTS.values():
        played = play(conversation, layout)
        resets = played.resets if layout is DURABLE else resets
        for name, simulator in SIMULATORS.items():
            each = cached_shares(played.calls, simulator)
            shares[name, layout.name] = sum(each, Share())
            at_resets[name, layout.name] = sum(
                (share for share, call in zip(each, played.calls, strict=True) if _resets(played.calls, call)), Share()
            )
    return Measured(conversation.seed, resets, conversation.narrows_access, shares, at_resets)


def cached_shares(calls: Sequence[Call], simulator: type[Simulator]) -> list[Share]:
    """Let a provider answer calls. Each model has a cache of its own.

    The most that a call can read is what the rule reads of the whole call before, 0 for a first call.
    """
    caches = {model: simulator() for model in {call.model for call in calls}}
    return [_share(caches[call.model], call, calls) for call in calls]


def totals(results: Iterable[Mapping[Key, Share]]) -> dict[Key, Share]:
    """Add the shares of conversations up."""
    added: dict[Key, Share] = {}
    for shares in results:
        for key, share in shares.items():
            added[key] = added.get(key, Share()) + share
    return added


def missed_bars(results: Sequence[Measured]) -> list[str]:
    """Say where `durable` is below its bar, or a baseline above it, a line for each; none where all is met.

    With a single conversation's resets left out: every layout pays them, in proportion to the length of prompts,
    which differs between layouts. In total they count. A baseline shows its words to who may not read them any
    more, so that conversations in which access is narrowed are not compared.
    """
    complaints = [complaint for result in results for complaint in _missed_by(result)]
    comparable = totals(result.shares for result in results if not result.narrows_access)
    for (simulator, layout), share in comparable.items():
        if layout in BASELINE_NAMES and share.value >= comparable[simulator, DURABLE.name].value:
            complaints.append(f"in total, {simulator}: {layout} is not below durable")
    return complaints


def lead_of_baselines(result: Measured) -> float:
    """Return by how much some baseline's share is the larger one before some provider, epochs' first calls counted.

    0.0 where none is, and where access is narrowed, which makes baselines leak.
    """
    if result.narrows_access:
        return 0.0
    return max(
        0.0,
        *(
            result.shares[simulator, baseline.name].value - result.shares[simulator, DURABLE.name].value
            for simulator in SIMULATORS
            for baseline in BASELINES
        ),
    )


def _share(cache: Simulator, call: Call, calls: Sequence[Call]) -> Share:
    maximum = 0 if call.before is None else cache.whole_tokens(calls[call.before].sent)
    return Share(min(cache.cached_tokens(call.sent), maximum), maximum)


def _resets(calls: Sequence[Call], call: Call) -> bool:
    return call.before is not None and calls[call.before].epoch != call.epoch


def _missed_by(result: Measured) -> list[str]:
    complaints: list[str] = []
    for simulator in SIMULATORS:
        place = f"seed {result.seed}, {simulator}"
        own = result.within_epochs(simulator, DURABLE)
        whole = result.shares[simulator, DURABLE.name].value
        if not result.resets and whole < DURABLE_AT_LEAST:
            complaints.append(f"{place}: durable at {whole:.4f} without a reset")
        if result.narrows_access:
            continue
        for baseline in BASELINES:
            other = result.within_epochs(simulator, baseline)
            if other > own:
                complaints.append(f"{place}: {baseline.name} at {other:.4f}, durable {own:.4f}")
    return complaints
