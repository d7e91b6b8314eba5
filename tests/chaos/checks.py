"""What must hold after any faults; each check is a function of the evidence alone."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from tests.chaos.records import (
    LAST_EVENTS,
    TERMINAL,
    Evidence,
    Reading,
    Resources,
    SeenEvent,
    SentPrompt,
    Stored,
    Turn,
    Violation,
)

MEMORY_FACTOR, MEMORY_MB = 1.3, 30.0
OPEN_FILES = 25
CONNECTIONS = 20
"""How far above the warm baseline a process, and PostgreSQL's clients, may be when all is quiet again."""

LOST_PLACE = ": 404 "
"""What is told of a conversation that a failover has taken back."""

ENDINGS = LAST_EVENTS | {"error"}
EXCERPT = 160


def numbers_are_gapless(evidence: Evidence) -> Iterator[Violation]:
    """No sequence number is missing or comes twice in what one connection showed.

    Nobody knows how many events a dead process sent: before the end of a turn that was not completed, numbers may jump.
    """
    for turn in evidence.turns:
        for reading in turn.readings:
            yield from _bad_numbers(turn, reading)


def _bad_numbers(turn: Turn, reading: Reading) -> Iterator[Violation]:
    begins_at = -1 if reading.after is None else reading.after
    number = begins_at
    for event in reading.events:
        may_jump = event.type in ENDINGS and event.type != "response.completed"
        if event.number <= number or (event.number > number + 1 and not may_jump and not _is_summary(reading.events)):
            yield _of("numbers", turn, f"{event.type} has number {event.number} behind {number} ({reading.replica})")
        number = max(number, event.number)


def _is_summary(events: Sequence[SeenEvent]) -> bool:
    """Say whether it is the replay of a turn whose events are gone: at most the first and the last."""
    return len(events) <= 2 and all(event.type in LAST_EVENTS | {"response.created"} for event in events)


def what_was_seen_is_stored(evidence: Evidence) -> Iterator[Violation]:
    """Each client saw a prefix of what is stored, and the stored end or the error of a broken stream."""
    for turn in evidence.turns:
        stored = evidence.stored.get(turn.response_id)
        if not turn.response_id:
            continue
        if stored is None:
            yield _of("stored", turn, "was shown to a client and is not stored")
            continue
        yield from _unlike_stored(turn, stored)


def _unlike_stored(turn: Turn, stored: Stored) -> Iterator[Violation]:
    seen = _text_from_the_start(turn)
    if not stored.text.startswith(seen):
        yield _of("stored", turn, f"saw {_end(seen)!r}, stored is {stored.status} {_end(stored.text)!r}")
    ends = {event.status for reading in turn.readings if (event := reading.last_event) and not reading.is_broken_off}
    if turn.plain is not None:
        status, text = turn.plain
        ends.add(status)
        if text != stored.text:
            yield _of("stored", turn, f"was answered {_end(text)!r}, stored is {stored.status} {_end(stored.text)!r}")
    if ends - {stored.status}:
        yield _of("stored", turn, f"ended {sorted(ends)} for its clients, stored is {stored.status}")


def _text_from_the_start(turn: Turn) -> str:
    """Join the deltas of all connections, up to the first number that nobody saw."""
    seen = {event.number: event.text for reading in turn.readings for event in reading.events if event.type != "error"}
    pieces: list[str] = []
    number = 0
    while number in seen:
        pieces.append(seen[number])
        number += 1
    return "".join(pieces)


def events_stay_the_same(evidence: Evidence) -> Iterator[Violation]:
    """One number is one event, whoever reads it and when.

    The first and the last event hold the whole response, of which a replay shows a later state; errors may be those of
    one connection.
    """
    for turn in evidence.turns:
        stored = evidence.stored.get(turn.response_id)
        replayed = {event.number: event for event in stored.replay if event.type not in ENDINGS} if stored else {}
        known = dict(replayed)
        for event in (event for reading in turn.readings for event in reading.events):
            if event.type in ENDINGS or event.type == "response.created":
                continue
            other = known.setdefault(event.number, event)
            if other.digest != event.digest:
                yield _of("events", turn, f"number {event.number} is {event.type} and {other.type}, not the same")


def the_model_is_quoted(evidence: Evidence) -> Iterator[Violation]:
    """What is stored is what the model said: all of it when completed, else its beginning."""
    for turn in evidence.turns:
        stored = evidence.stored.get(turn.response_id)
        if stored is None or turn.expected is None:
            continue
        is_whole = stored.status == "completed"
        if (stored.text != turn.expected) if is_whole else not turn.expected.startswith(stored.text):
            told = f"{stored.status}: stored {_end(stored.text)!r}, the model said {_end(turn.expected)!r}"
            yield _of("quoted", turn, told)


def tools_run_once(evidence: Evidence) -> Iterator[Violation]:
    """No finished tool call runs again."""
    for turn in evidence.turns:
        runs = evidence.tool_runs.get(turn.response_id, 0)
        if runs > turn.calls:
            yield _of("tools", turn, f"its {turn.calls} tool calls ran {runs} times")


def keys_have_one_turn(evidence: Evidence) -> Iterator[Violation]:
    """All answers to one Idempotency-Key are of one turn."""
    for turn in evidence.turns:
        if len(set(turn.answers)) > 1:
            yield Violation("keys", (turn.key, *sorted(set(turn.answers))), f"{len(turn.answers)} answers, many turns")


def turns_end(evidence: Evidence) -> Iterator[Violation]:
    """Every turn has ended when the bound after the last fault is over."""
    for response_id in evidence.unfinished:
        yield Violation("ended", (response_id,), "is still running after the bound")
    for turn in evidence.turns:
        stored = evidence.stored.get(turn.response_id)
        if stored is not None and stored.status not in TERMINAL and turn.response_id not in evidence.unfinished:
            yield _of("ended", turn, f"is {stored.status}")


def acknowledged_is_there(evidence: Evidence) -> Iterator[Violation]:
    """Documents, items and metadata are as they were acknowledged last."""
    for register in evidence.registers:
        found = evidence.found.get(register.path)
        if found is not None and not register.allows(found):
            told = f"acknowledged {_end(register.acknowledged or 'nothing')!r}, found {_end(found or 'nothing')!r}"
            yield Violation("acknowledged", (register.path,), told)


def prompts_only_grow(evidence: Evidence) -> Iterator[Violation]:
    """Each prompt of a conversation begins with all of the one before that lies whole in the log."""
    for told in evidence.drift:
        yield Violation("drift", (), told)
    in_log = _results_in_log(evidence)
    for cache_key, calls in _by_conversation(evidence.prompts):
        kept = [call for call in calls if call.results <= in_log.get(call.turn, -1)]
        for earlier, later in pairwise(kept):
            if not later.opening.startswith(earlier.opening):
                at = _first_difference(earlier.opening, later.opening)
                ids = (cache_key, earlier.turn, later.turn)
                told = f"{earlier.opening[at - 60 : at + 60]!r} became {later.opening[at - 60 : at + 60]!r}"
                yield Violation("prompts", ids, told)


def _results_in_log(evidence: Evidence) -> dict[str, int]:
    """Count by question the tool results in the log; a question that is void there is left out."""
    counted: dict[str, int] = {}
    for turn in evidence.turns:
        share = evidence.log.get(turn.response_id)
        if share is not None and not share.is_void:
            question = turn.question or turn.key
            counted[question] = counted.get(question, 0) + share.results
    return counted


def _by_conversation(prompts: Iterable[SentPrompt]) -> Iterator[tuple[str, list[SentPrompt]]]:
    ordered = sorted(prompts, key=lambda call: call.cache_key)
    for cache_key, calls in groupby(ordered, key=lambda call: call.cache_key):
        first_seen: dict[str, int] = {}
        listed = list(calls)
        for place, call in enumerate(listed):
            first_seen.setdefault(call.turn, place)
        # a process that was frozen may go on with an earlier turn
        yield cache_key, sorted(listed, key=lambda call: first_seen[call.turn])


def _first_difference(one: bytes, other: bytes) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def nobody_died(evidence: Evidence) -> Iterator[Violation]:
    """No process ended but those that the schedule killed."""
    for death in evidence.deaths:
        if not death.excuse:
            yield Violation("deaths", (death.name,), f"{death.how}\n{death.log}")


def nothing_is_our_defect(evidence: Evidence) -> Iterator[Violation]:
    """No answer is a 500: what is away is a 503, what is wrong a 4xx."""
    for told in evidence.server_errors:
        yield Violation("status 500", (), told)


def conversations_go_on(evidence: Evidence) -> Iterator[Violation]:
    """Each conversation takes a further turn when the faults are over."""
    for told in evidence.stuck:
        yield Violation("stuck", (), told)


def nobody_waits_for_ever(evidence: Evidence) -> Iterator[Violation]:
    """When the bound after the last fault is over, every call has been answered and every stream has ended."""
    for told in evidence.hung:
        yield Violation("hung", (), told)


def resources_come_back(evidence: Evidence) -> Iterator[Violation]:
    """When all is quiet, memory, files, connections and keys are near what they were before the faults."""
    before, after = evidence.before, evidence.after
    if before is not None and after is not None:
        yield from (Violation("resources", (), told) for told in grown(before, after))


def grown(before: Resources, after: Resources) -> Iterator[str]:
    """Tell each figure that is not near what it was before."""
    for name, memory in after.memory_mb.items():
        if memory > before.memory_mb[name] * MEMORY_FACTOR + MEMORY_MB:
            yield f"{name} holds {memory:.0f} MB, before the faults {before.memory_mb[name]:.0f}"
    for name, files in after.open_files.items():
        if files > before.open_files[name] + OPEN_FILES:
            yield f"{name} has {files} open files, before the faults {before.open_files[name]}"
    if after.connections > before.connections + CONNECTIONS:
        yield f"PostgreSQL has {after.connections} clients, before the faults {before.connections}"
    if after.keys_without_expiry > before.keys_without_expiry:
        yield f"Valkey has {after.keys_without_expiry} keys without expiry, before {before.keys_without_expiry}"


CHECKS: tuple[Callable[[Evidence], Iterator[Violation]], ...] = (
    numbers_are_gapless,
    what_was_seen_is_stored,
    events_stay_the_same,
    the_model_is_quoted,
    tools_run_once,
    keys_have_one_turn,
    turns_end,
    acknowledged_is_there,
    prompts_only_grow,
    nobody_died,
    nothing_is_our_defect,
    conversations_go_on,
    nobody_waits_for_ever,
    resources_come_back,
)


def without_lost(evidence: Evidence, lost: Sequence[tuple[float, float]]) -> Evidence:
    """Leave out what a failover may have taken back: what ran or was acknowledged in a time that is lost.

    Such turns need only end, and their conversations only go on, unless those themselves are lost.
    """

    def may_be_lost(turn: Turn) -> bool:
        return any(turn.was_touched_in(begins, ends) for begins, ends in lost)

    touched = [turn for turn in evidence.turns if may_be_lost(turn)]
    keys, talks = {turn.key for turn in touched}, {turn.conversation for turn in touched}
    kept = [
        turn
        for turn in evidence.turns
        if turn.key not in keys and (turn.conversation not in talks or not turn.conversation)
    ]
    named = {turn.key for turn in kept}
    registers = [one for one in evidence.registers if not any(a <= one.acknowledged_at <= b for a, b in lost)]
    prompts = [sent for sent in evidence.prompts if sent.turn in named]
    stuck = [told for told in evidence.stuck if not (lost and LOST_PLACE in told)]
    drift = () if lost else evidence.drift
    return replace(evidence, turns=kept, registers=registers, prompts=prompts, stuck=stuck, drift=drift)


def violations(evidence: Evidence) -> list[Violation]:
    """Run all checks."""
    return [violation for check in CHECKS for violation in check(evidence)]


def _of(check: str, turn: Turn, told: str) -> Violation:
    return Violation(check, (turn.response_id, turn.key, turn.conversation), f"{turn.kind}: {told}")


def _end(text: str) -> str:
    return text if len(text) <= EXCERPT else f"… {text[-EXCERPT:]}"
