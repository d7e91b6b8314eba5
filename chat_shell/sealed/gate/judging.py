"""All checks over one reply; their order decides nothing, since every one of them is asked."""

from collections.abc import Iterator, Sequence

from chat_shell.sealed.codes import GateCode
from chat_shell.sealed.gate.canary import canary_hits
from chat_shell.sealed.gate.case import GateCase
from chat_shell.sealed.gate.decoders import decodings, is_encoded
from chat_shell.sealed.gate.figures import has_figure
from chat_shell.sealed.gate.folding import fold
from chat_shell.sealed.gate.identifiers import names_something
from chat_shell.sealed.gate.instruction import is_instruction
from chat_shell.sealed.gate.markup import has_markup
from chat_shell.sealed.gate.overlap import shares_passage
from chat_shell.sealed.gate.schema import MAX_REPLY_BYTES, Candidate, parse
from chat_shell.sealed.gate.structure import follows_outline, lists_labels, points_of
from chat_shell.sealed.gate.unicode import is_foreign
from chat_shell.sealed.released import Released
from chat_shell.sealed.verdicts import Blocked, Refused, Verdict

GATE_VERSION = "4"
"""Goes up with every change of a check, a list or a threshold: kept releases of another version are not reused."""


def judge(reply: bytes, case: GateCase) -> Verdict:
    """Release a reply, pass on its refusal, or name every check that it failed."""
    candidate = parse(reply)
    if isinstance(candidate, Refused):
        return candidate
    raw = reply[: 4 * MAX_REPLY_BYTES].decode("utf-8", errors="replace")
    if candidate is None:
        hits = _canary_hits([raw], case)
        return Blocked((GateCode.SCHEMA, GateCode.CANARY) if hits else (GateCode.SCHEMA,), hits)
    texts = _texts(candidate)
    hits = _canary_hits([raw, *texts], case)
    codes = {*_failed(candidate, texts, case), *((GateCode.CANARY,) if hits else ())}
    if codes:
        return Blocked(tuple(code for code in GateCode if code in codes), hits)
    return _release(candidate)


def _failed(candidate: Candidate, texts: Sequence[str], case: GateCase) -> Iterator[GateCode]:
    """Yield the checks that a candidate fails; `texts` are its fields and, last, all of them as one."""
    fields, together = texts[:-1], texts[-1]
    failures = {
        GateCode.UNICODE: any(map(is_foreign, fields)),
        GateCode.FIGURES: any(map(has_figure, texts)),
        GateCode.MARKUP: any(map(has_markup, fields)),
        GateCode.IDENTIFIERS: any(names_something(text, case.identifiers) for text in texts),
        GateCode.OVERLAP: shares_passage(fold(together), case.passages),
        GateCode.DECODERS: is_encoded(together, case.identifiers, case.passages, case.own_words),
        GateCode.STRUCTURE: _follows(candidate, case),
        GateCode.INSTRUCTION: any(map(is_instruction, texts)),
    }
    yield from (code for code, failed in failures.items() if failed)


def _texts(candidate: Candidate) -> tuple[str, ...]:
    """Return each text alone and, last, all of them as one: what is cut in pieces is read together."""
    return *candidate.fields, " ".join(candidate.fields)


def _follows(candidate: Candidate, case: GateCase) -> bool:
    if lists_labels(item for items in candidate.lists for item in items):
        return True
    orders = [*candidate.lists, candidate.fields, *map(points_of, candidate.fields)]
    return any(follows_outline(points, case.outlines) for points in orders)


def _canary_hits(texts: Sequence[str], case: GateCase) -> int:
    return canary_hits([*texts, *(decoded for text in texts for decoded in decodings(text))], case.canaries)


def _release(candidate: Candidate) -> Released:
    return Released(
        reason=candidate.reason,
        summary=candidate.summary,
        observations=candidate.observations,
        risks=candidate.risks,
        recommended_actions=candidate.recommended_actions,
        confidence=candidate.confidence,
    )
