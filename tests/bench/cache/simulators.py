"""Five rules by which providers find the cached part of a request.

A request is its canonical parts: the tools, then each message. A token is four bytes of UTF-8.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from chat_shell.models.anthropic_messages.encoder import LOOKBACK_BLOCKS

BYTES_A_TOKEN = 4

STEP_MINIMUM_TOKENS = 1_024
STEP_TOKENS = 128
BLOCK_TOKENS = 16


@dataclass(frozen=True)
class Sent:
    """A request as a provider gets it.

    `blocks` counts the blocks of each part; behind the parts of `marks` the caller has set a mark, behind those of
    `breakpoints` a breakpoint.
    """

    parts: tuple[bytes, ...]
    blocks: tuple[int, ...]
    marks: tuple[int, ...]
    breakpoints: tuple[int, ...] = ()


class Simulator(Protocol):
    """The cache of one provider for one conversation and its forks."""

    def cached_tokens(self, sent: Sent) -> int:
        """Take a request; return how much of it was read from the cache."""
        ...

    def whole_tokens(self, sent: Sent) -> int:
        """Return what the rule reads of a request that is sent a second time."""
        ...


@dataclass
class _Node:
    """A prefix that was sent; `stored` says that the provider can find it as it is."""

    end_bytes: int = 0
    stored: bool = False
    longer: dict[bytes, "_Node"] = field(default_factory=dict[bytes, "_Node"])


class _Prefixes:
    """All prefixes sent so far, by whole parts."""

    def __init__(self) -> None:
        self._root = _Node()

    def walk(self, parts: Sequence[bytes]) -> list[_Node]:
        """Return the known prefixes of a request, shortest first, from the empty one on."""
        nodes = [self._root]
        for part in parts:
            known = nodes[-1].longer.get(part)
            if known is None:
                break
            nodes.append(known)
        return nodes

    def add(self, parts: Sequence[bytes]) -> list[_Node]:
        """Make all prefixes of a request known and return them, from the empty one on."""
        nodes = [self._root]
        for part in parts:
            nodes.append(nodes[-1].longer.setdefault(part, _Node(nodes[-1].end_bytes + len(part))))
        return nodes

    def shared_tokens(self, parts: Sequence[bytes]) -> int:
        """Return how long the longest beginning is that a request shares with one before it."""
        nodes = self.walk(parts)
        shared = nodes[-1].end_bytes
        if len(nodes) <= len(parts):
            differing = parts[len(nodes) - 1]
            shared += max((_shared_bytes(differing, other) for other in nodes[-1].longer), default=0)
        return shared // BYTES_A_TOKEN


class TokenStep:
    """Nothing below 1,024 tokens, from there in steps of 128."""

    def __init__(self) -> None:
        self._prefixes = _Prefixes()

    def cached_tokens(self, sent: Sent) -> int:
        """Step down from the longest common beginning."""
        shared = self._prefixes.shared_tokens(sent.parts)
        self._prefixes.add(sent.parts)
        return self._steps(shared)

    def whole_tokens(self, sent: Sent) -> int:
        """Step down from the whole."""
        return self._steps(_size_tokens(sent))

    @staticmethod
    def _steps(tokens: int) -> int:
        if tokens < STEP_MINIMUM_TOKENS:
            return 0
        return STEP_MINIMUM_TOKENS + (tokens - STEP_MINIMUM_TOKENS) // STEP_TOKENS * STEP_TOKENS


class Block:
    """Whole blocks of 16 tokens."""

    def __init__(self) -> None:
        self._prefixes = _Prefixes()

    def cached_tokens(self, sent: Sent) -> int:
        """Round the longest common beginning down."""
        shared = self._prefixes.shared_tokens(sent.parts)
        self._prefixes.add(sent.parts)
        return shared // BLOCK_TOKENS * BLOCK_TOKENS

    def whole_tokens(self, sent: Sent) -> int:
        """Round the whole down."""
        return _size_tokens(sent) // BLOCK_TOKENS * BLOCK_TOKENS


class Marker:
    """The longest position that an earlier request has marked, at most 20 blocks behind a mark of this one."""

    def __init__(self) -> None:
        self._prefixes = _Prefixes()

    def cached_tokens(self, sent: Sent) -> int:
        """Look back from each mark, then write the marks."""
        known = self._prefixes.walk(sent.parts)
        found = max((_found_bytes(known, sent.blocks, mark) for mark in sent.marks), default=0)
        nodes = self._prefixes.add(sent.parts)
        for mark in sent.marks:
            nodes[mark + 1].stored = True
        return found // BYTES_A_TOKEN

    def whole_tokens(self, sent: Sent) -> int:
        """Read up to the last mark."""
        return sum(map(len, sent.parts[: max(sent.marks, default=-1) + 1])) // BYTES_A_TOKEN


class WholeUnit:
    """The longest earlier request that this one begins with as a whole."""

    def __init__(self) -> None:
        self._prefixes = _Prefixes()

    def cached_tokens(self, sent: Sent) -> int:
        """Find the longest stored request, then store this one."""
        known = self._prefixes.walk(sent.parts)
        found = max((node.end_bytes for node in known if node.stored), default=0)
        self._prefixes.add(sent.parts)[-1].stored = True
        return found // BYTES_A_TOKEN

    def whole_tokens(self, sent: Sent) -> int:
        """Read all of it."""
        return _size_tokens(sent)


class Breakpoint:
    """The longest beginning up to a breakpoint that an earlier request has written, as OpenAI finds it since GPT-5.6.

    A request reads at its newest 80 breakpoints and writes at its newest four.
    """

    READS, WRITES = 80, 4

    def __init__(self) -> None:
        self._prefixes = _Prefixes()

    def cached_tokens(self, sent: Sent) -> int:
        """Look at the breakpoints, then write the newest."""
        known = self._prefixes.walk(sent.parts)
        ends = [place + 1 for place in sent.breakpoints[-self.READS :] if place + 1 < len(known)]
        found = max((known[end].end_bytes for end in ends if known[end].stored), default=0)
        nodes = self._prefixes.add(sent.parts)
        for place in sent.breakpoints[-self.WRITES :]:
            nodes[place + 1].stored = True
        return found // BYTES_A_TOKEN

    def whole_tokens(self, sent: Sent) -> int:
        """Read up to the newest breakpoint."""
        return sum(map(len, sent.parts[: max(sent.breakpoints, default=-1) + 1])) // BYTES_A_TOKEN


SIMULATORS: Mapping[str, type[Simulator]] = {
    "token step": TokenStep,
    "block": Block,
    "marker": Marker,
    "whole unit": WholeUnit,
    "breakpoint": Breakpoint,
}


def _size_tokens(sent: Sent) -> int:
    return sum(map(len, sent.parts)) // BYTES_A_TOKEN


def _found_bytes(known: Sequence[_Node], blocks: Sequence[int], mark: int) -> int:
    """Return the longest stored prefix that ends at most 20 blocks behind the end of part `mark`."""
    behind_blocks = 0
    for place in range(mark, -1, -1):
        if behind_blocks > LOOKBACK_BLOCKS:
            return 0
        if place + 1 < len(known) and known[place + 1].stored:
            return known[place + 1].end_bytes
        behind_blocks += blocks[place]
    return 0


def _shared_bytes(one: bytes, other: bytes) -> int:
    """Return the length of the longest common beginning, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
