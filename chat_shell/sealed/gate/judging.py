"""The five steps over one reply: form, canonical form, words, combinations, and language with orders and canaries.

All steps are asked, so that a rewrite learns of every mistake at once; any finding blocks.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice

from chat_shell.sealed.codes import GateCode
from chat_shell.sealed.gate.case import GateCase, canary_hits, prepare
from chat_shell.sealed.gate.schema import MAX_REPLY_BYTES, Candidate, parse
from chat_shell.sealed.gate.version import GATE_VERSION
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.verdicts import Blocked, Judge, Refused, Released, Verdict
from shared.disclosure.canonical import CLAUSES, Piece, compose, parts_of, pieces, unreadable
from shared.disclosure.combinations import alike_findings, containment_findings, find_retellings, term_findings
from shared.disclosure.folding import fold
from shared.disclosure.frame import BaseRules, find_beyond_frame
from shared.disclosure.languages import Language, has_other_words, language_of
from shared.disclosure.outlines import follows_outline
from shared.disclosure.passages import shares_passage
from shared.disclosure.readings import is_hidden_in
from shared.disclosure.subjects import find_spoken_of
from shared.disclosure.words import Finding, find_rejoined, find_repeated, find_withheld
from shared.models.safe_summary import MAX_LIST_ITEM_CHARACTERS, MAX_SUMMARY_CHARACTERS
from shared.plain_text.orders import is_order_to_model

MAX_PHRASES = 40
"""Words and phrases that a rewrite is told of."""


class CodeGate:
    """The gate: plain code that trusts no model."""

    version = GATE_VERSION

    def prepare(
        self,
        chunks: Sequence[ProtectedChunk],
        user_words: str,
        canaries: Sequence[str],
        siblings: Sequence[ProtectedChunk],
        language: Language | None,
        rules: BaseRules,
    ) -> Judge:
        """Read the chunks of one search; see `prepare`."""
        return partial(judge, case=prepare(chunks, user_words, canaries, siblings, language, rules))


def judge(reply: bytes, case: GateCase) -> Verdict:
    """Release a reply in its canonical form, pass on its refusal, or name every check that it failed."""
    candidate = parse(reply)
    if isinstance(candidate, Refused):
        return candidate
    raw = reply[: 4 * MAX_REPLY_BYTES].decode("utf-8", errors="replace")
    said = candidate.fields if candidate else ()
    hits = canary_hits((raw, *said, " ".join(said)), case.canaries)
    fields = [*map(pieces, said)]
    findings = [*_findings(candidate, fields, case)] if candidate else [Finding(GateCode.SCHEMA, "")]
    if hits:
        findings.append(Finding(GateCode.CANARY, ""))
    released = _release(candidate, fields, case) if candidate and not findings else None
    return released or _block(findings or [Finding(GateCode.SCHEMA, "")], hits)


def _block(findings: Sequence[Finding], hits: int) -> Blocked:
    """Name the checks that failed, in their order, and the phrases that a rewrite is told of."""
    codes, phrases = {code for code, _ in findings}, dict.fromkeys(phrase for _, phrase in findings if phrase)
    return Blocked(tuple(filter(codes.__contains__, GateCode)), hits, tuple(phrases)[:MAX_PHRASES])


def _findings(candidate: Candidate, fields: Sequence[Sequence[Piece]], case: GateCase) -> Iterator[Finding]:
    texts = [compose(field, {}) for field in fields]
    together = " ".join(texts)
    yield from (Finding(GateCode.MARKUP, sign) for sign in sorted(unreadable("".join(candidate.fields))))
    for field in fields:
        yield from find_withheld(field, case.own, case.words)
        yield from find_repeated(field)
    yield from find_rejoined(fields, case.own, case.words)
    yield from alike_findings(fields[1:])
    yield from chain(*(term_findings(text, case.combinations, case.own) for text in (*texts, together)))
    yield from containment_findings(together, case.combinations, case.own)
    yield from find_retellings(fields, case.combinations, case.own)
    if case.subjects:
        yield from find_beyond_frame(fields, case.support, case.own)
    yield from find_spoken_of(fields, case.subjects, case.roles)
    yield from (Finding(code, "") for code, failed in _other_checks(candidate, fields, together, case) if failed)


def _other_checks(
    candidate: Candidate, fields: Sequence[Sequence[Piece]], together: str, case: GateCase
) -> Iterator[tuple[GateCode, bool]]:
    """Yield the checks of the whole answer, which no single phrase fails."""
    yield GateCode.OVERLAP, shares_passage(fold(together), case.passages)
    yield GateCode.DECODERS, is_hidden_in(candidate.fields, case.hidden)
    yield GateCode.STRUCTURE, any(follows_outline(points, case.outlines) for points in _orders(candidate, fields))
    yield GateCode.LANGUAGE, language_of(together) is not case.language or has_other_words(together, case.own)
    yield GateCode.INSTRUCTION, any(map(is_order_to_model, (*candidate.fields, together)))


def _orders(candidate: Candidate, fields: Sequence[Sequence[Piece]]) -> Iterable[Sequence[str]]:
    """Yield the points of an answer in their orders: of each list, of all fields, and of the clauses of a field."""
    clauses = ([" ".join(piece.text for piece in part) for part in parts_of(field, CLAUSES)] for field in fields)
    return (*candidate.lists, candidate.fields, *clauses)


def _release(candidate: Candidate, fields: Sequence[Sequence[Piece]], case: GateCase) -> Released | None:
    """Build what leaves from the canonical fields; None where one of them has no words or is too long."""
    summary, *items = (compose(field, case.own.spellings) for field in fields)
    fits = 0 < len(summary) <= MAX_SUMMARY_CHARACTERS
    if not fits or not all(0 < len(item) <= MAX_LIST_ITEM_CHARACTERS for item in items):
        return None
    rest = iter(items)
    observations, risks, actions = (tuple(islice(rest, len(each))) for each in candidate.lists)
    return Released(
        reason=candidate.reason,
        summary=summary,
        observations=observations,
        risks=risks,
        recommended_actions=actions,
        confidence=candidate.confidence,
    )
