"""Check that each model call of a log begins with all of the call before it, and say where one does not."""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import blake2b
from itertools import accumulate
from typing import Final, NamedTuple

from cli.cache.differences import Difference, find_difference, length_shared, parts_of_head, share_of_text
from cli.cache.entries import BY_BLOCKS, Log, LoggedCall

_TAIL_PIECES: Final = 4
"""By so many of its last pieces a conversation is known again: what was newest stands in its next call."""
_CANDIDATES: Final = 4
_MOST_PROGRAMS: Final = 16
_ENOUGH: Final = 3
_SHARED: Final = 0.5
"""More than this share of a call stands in the next one of its conversation, where a log does not name them."""
_ALIKE: Final = 0.5
_EXAMPLES_OF_A_PATH: Final = 3


class Verdict(StrEnum):
    """What a call is to those before it.

    One that branches begins with an earlier call, but not with the newest, or asks otherwise what the newest asked.
    """

    BEGINS = "begins"
    EXTENDS = "extends"
    BRANCHES = "branches"
    RESET = "reset"
    DIFFERS = "differs"


@dataclass
class Report:
    """What a log holds: counts of calls by verdict, of conversations, of declared resets, of differences by path.

    `sent_bytes` is what calls had sent that others follow, `kept_bytes` what of it those begin with. `moved` are
    conversations whose tools or instructions differ from those of one before, `traced` calls that blocks stand for,
    `passed_over` entries of the log without a request.
    """

    calls: Counter[Verdict] = field(default_factory=Counter[Verdict])
    conversations: int = 0
    moved: int = 0
    traced: int = 0
    passed_over: int = 0
    resets: Counter[str] = field(default_factory=Counter[str])
    paths: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, list[Difference]] = field(default_factory=dict[str, list[Difference]])
    sent_bytes: int = 0
    kept_bytes: int = 0

    def note(self, path: str, find: Callable[[], Difference]) -> None:
        """Count a difference by its path; the first of each path are looked at closer."""
        self.paths[path] += 1
        if self.paths[path] <= _EXAMPLES_OF_A_PATH:
            self.examples.setdefault(path, []).append(find())

    def add(self, found: "Report") -> None:
        """Add the differences at the beginnings of conversations."""
        self.moved += found.paths.total()
        self.sent_bytes += found.sent_bytes
        self.kept_bytes += found.kept_bytes
        self.paths.update(found.paths)
        for path, examples in found.examples.items():
            self.examples[path] = [*self.examples.get(path, ()), *examples][:_EXAMPLES_OF_A_PATH]

    @property
    def kept_share(self) -> float | None:
        """The share of what had been sent that a cache could have read again; None where nothing was to be repeated."""
        return self.kept_bytes / self.sent_bytes if self.sent_bytes else None


@dataclass(frozen=True)
class _Sent:
    """A call as hashes of its pieces and their sizes in bytes; `ends` is a number for each beginning, by its model.

    By its last pieces, `tail` of them, its conversation is known again.
    """

    place: int
    form: str
    model: str
    head: int
    asked: int
    hashes: Sequence[int]
    sizes: Sequence[int]
    ends: Sequence[int]
    tail: int

    @classmethod
    def of(cls, call: LoggedCall) -> "_Sent":
        """Hash a call."""
        pieces = [each.encode(errors="surrogatepass") for each in call.pieces]
        hashes = [int.from_bytes(blake2b(each, digest_size=8).digest()) for each in pieces]
        ends = list(accumulate(hashes, lambda end, each: hash((end, each)), initial=hash(call.model)))[1:]
        tail = _TAIL_PIECES if call.has_known_head else 1
        sizes = [len(each) for each in pieces]
        return cls(call.place, call.form, call.model, call.head, call.asked, hashes, sizes, ends, tail)

    @property
    def end_of_head(self) -> int:
        """The number of its beginning as far as tools and instructions reach, whatever its model."""
        return hash(tuple(self.hashes[: self.head]))

    @property
    def messages(self) -> Sequence[int]:
        """The hashes behind its head."""
        return self.hashes[self.head :]

    def share_in(self, there: Set[int]) -> float:
        """Return what share of its messages stands in another call."""
        messages = self.messages
        return sum(each in there for each in messages) / len(messages) if messages else 0.0


class _Calls:
    """The calls so far: of each conversation the newest, and of all others one number."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}
        self._tails: dict[int, list[int]] = {}
        self._named: dict[str, int] = {}
        self.newest: list[_Sent] = []

    def find_earlier(self, sent: _Sent, name: str) -> tuple[int | None, int]:
        """Return the conversation that a call goes on with, and how many pieces the call of it has that it begins with.

        `name` is what the log calls its conversation; "" where it does not tell.
        """
        begun = next((at for at in range(len(sent.ends), 0, -1) if sent.ends[at - 1] in self._ends), 0)
        found = self._ends[sent.ends[begun - 1]] if begun else None
        if name:
            named = self._named.get(name)
            return named, begun if named == found else 0
        return (self._guess(sent) if found is None else found), begun

    def keep(self, sent: _Sent, name: str, conversation: int | None) -> None:
        """Make a call the newest of its conversation, or the first of a new one."""
        if conversation is None:
            conversation = len(self.newest)
            self.newest.append(sent)
            if name:
                self._named[name] = conversation
        self.newest[conversation] = sent
        self._ends[sent.ends[-1]] = conversation
        for each in sent.messages[-sent.tail :]:
            tails = self._tails.setdefault(each, [])
            if conversation not in tails:
                tails.append(conversation)
                del tails[:-_CANDIDATES]

    def _guess(self, sent: _Sent) -> int | None:
        there = set(sent.hashes)
        candidates = {number for each in sent.messages for number in self._tails.get(each, ())}
        # the same messages under another head are those of another program, such as a guard
        others = [(number, self.newest[number]) for number in candidates]
        shares = {
            number: newest.share_in(there)
            for number, newest in others
            if newest.form == sent.form and newest.messages != sent.messages
        }
        best = max(shares, key=lambda number: (shares[number], number), default=None)
        return best if best is not None and shares[best] > _SHARED else None


def check(log: Log) -> Report:
    """Check all calls of a log.

    Raises:
        NoLog: it cannot be read as one.
        OSError: it cannot be read.
    """
    report, calls, heads = Report(), _Calls(), _Heads()
    for call in log.calls():
        sent = _Sent.of(call)
        report.traced += call.name == BY_BLOCKS
        conversation, begun = calls.find_earlier(sent, call.conversation)
        if conversation is None:
            report.calls[Verdict.BEGINS] += 1
            heads.compare(report, call, sent.end_of_head)
        else:
            compared = _Compared(calls.newest[conversation], sent, begun, conversation)
            if compared.has_another_head and not call.conversation:
                heads.hold(call, compared)
            else:
                _compare(report, log, call, compared)
        calls.keep(sent, call.conversation, conversation)
    report.conversations, report.passed_over = len(calls.newest), log.passed_over
    heads.note_moving(report)
    heads.note_held(report, log)
    return report


class _Compared(NamedTuple):
    """A call, the newest of its conversation before it, and how many pieces it has of a whole call of that."""

    before: _Sent
    sent: _Sent
    begun: int
    conversation: int

    @property
    def kept(self) -> int:
        """How many pieces both have at their beginning."""
        return length_shared(self.before.hashes, self.sent.hashes)

    @property
    def has_another_head(self) -> bool:
        """Whether tools or instructions differ, and no call before had these."""
        return not self.begun and self.kept < min(self.before.head, self.sent.head)


def _compare(report: Report, log: Log, call: LoggedCall, compared: _Compared) -> None:
    before, sent, begun, _ = compared
    kept = compared.kept
    is_kept = kept == len(before.hashes) and (before.model == sent.model or kept < len(sent.hashes))
    if not is_kept and not call.reset and _is_branch(before, sent, kept, begun):
        report.calls[Verdict.BRANCHES] += 1
        return
    is_unread = before.model != sent.model and begun < len(before.hashes)
    report.sent_bytes += sum(before.sizes)
    report.kept_bytes += 0 if is_unread else sum(before.sizes[:kept])
    if kept == len(before.hashes) and not is_unread:
        verdict = Verdict.EXTENDS
    elif call.reset:
        verdict = Verdict.RESET
        report.resets[call.reset] += 1
    else:
        verdict = Verdict.DIFFERS
        is_same = kept == len(before.hashes)
        path = "model" if is_same else call.path(kept) if kept < len(call.pieces) else "the end"
        report.note(path, lambda: find_difference(log.read_again(before.place), call))
    report.calls[verdict] += 1


def _is_branch(before: _Sent, sent: _Sent, kept: int, begun: int) -> bool:
    """Say whether a call goes another way than the newest: nothing of what was sent has moved in it.

    It may ask something else last, or begin with a whole earlier call of `begun` pieces, more than it shares with the
    newest, or else with little of what that holds.
    """
    if kept >= max(len(sent.hashes) - sent.asked, sent.head, 1):
        return True
    heads = [each.hashes[: each.head] for each in (before, sent)]
    is_reordered = heads[0] != heads[1] and sorted(heads[0]) == sorted(heads[1])
    if not begun or is_reordered:
        return False
    is_other_model = before.model != sent.model
    return kept < begun + is_other_model or before.share_in(set(sent.hashes)) <= _SHARED


class _Held(NamedTuple):
    """A call with another head than its conversation, until it is known whether that head is another program's."""

    places: tuple[int, int]
    path: str
    conversation: int
    sent_bytes: int
    kept_bytes: int


@dataclass(eq=False)
class _Program:
    """Conversations whose tools and instructions are alike, and where these differed from those of the one before."""

    conversations: int = 0
    moved: Report = field(default_factory=Report)


class _Heads:
    """Tools and instructions with which conversations begin: each pays for its first call where something moves there.

    Those of different programs in one log are no fault: the most of their texts differs. Nor are those of a program's
    tenants or agents, which come again.
    """

    def __init__(self) -> None:
        self._programs: dict[int, _Program] = {}
        self._newest: list[tuple[LoggedCall, _Program]] = []
        self._held: dict[int, list[_Held]] = {}

    def compare(self, report: Report, call: LoggedCall, end_of_head: int) -> None:
        """Compare the head of a conversation with those begun before it."""
        program = self._programs.get(end_of_head)
        if program is None:
            head = replace(call, pieces=call.pieces[: call.head])
            found = next((each for each in self._newest if _are_alike(each[0], head)), None)
            program = self._programs[end_of_head] = found[1] if found else _Program()
            if found:
                self._newest.remove(found)
                is_reordered = sorted(found[0].pieces) == sorted(head.pieces)
                _note_head(report if is_reordered else program.moved, found[0], head)
            self._newest.insert(0, (head, program))
            del self._newest[_MOST_PROGRAMS:]
        program.conversations += 1

    def note_moving(self, report: Report) -> None:
        """Note where the heads of a program differ, if more than a third of its conversations have a new one."""
        for program in dict.fromkeys(self._programs.values()):
            if _ENOUGH * program.moved.paths.total() > program.conversations:
                report.add(program.moved)

    def hold(self, call: LoggedCall, compared: _Compared) -> None:
        """Keep a call with another head than its conversation: a program that writes titles, or one that moves."""
        before, sent, kept = compared.before, compared.sent, compared.kept
        places = before.place, sent.place
        held = _Held(places, call.path(kept), compared.conversation, sum(before.sizes), sum(before.sizes[:kept]))
        self._held.setdefault(sent.end_of_head, []).append(held)

    def note_held(self, report: Report, log: Log) -> None:
        """Note the calls that were kept, but for heads that come in many conversations and are another program's."""
        for held in self._held.values():
            before, head = (log.read_again(place) for place in held[0].places)
            if len({each.conversation for each in held}) > 1 and _is_another_program(before, head):
                report.calls[Verdict.BRANCHES] += len(held)
                continue
            report.calls[Verdict.DIFFERS] += len(held)
            for each in held:
                report.sent_bytes += each.sent_bytes
                report.kept_bytes += each.kept_bytes
                report.note(each.path, lambda each=each: find_difference(*map(log.read_again, each.places)))


def _is_another_program(before: LoggedCall, call: LoggedCall) -> bool:
    heads = [replace(each, pieces=each.pieces[: each.head]) for each in (before, call)]
    if before.head != call.head:
        return not set(heads[0].pieces) & set(heads[1].pieces)
    return not _are_alike(*heads) and parts_of_head(before) != parts_of_head(call)


def _are_alike(before: LoggedCall, head: LoggedCall) -> bool:
    if (before.form, before.head) != (head.form, head.head):
        return False
    differing = [pair for pair in zip(before.pieces, head.pieces, strict=True) if pair[0] != pair[1]]
    if not differing or sorted(before.pieces) == sorted(head.pieces):
        return True
    return share_of_text(*("\n".join(each) for each in zip(*differing, strict=True))) >= _ALIKE


def _note_head(report: Report, before: LoggedCall, head: LoggedCall) -> None:
    found, moved = find_difference(before, head), Report()
    moved.note(f"{found.path} of different conversations", lambda: found)
    moved.sent_bytes = sum(map(len, before.pieces))
    moved.kept_bytes = sum(map(len, before.pieces[: length_shared(before.pieces, head.pieces)]))
    report.add(moved)
