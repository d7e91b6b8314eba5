"""The grade `strict`: a reply is read for its codes alone, and what leaves are the sentences that we have for these.

Whatever else a reply holds is dropped: a text of the secondary model or of a passage has no way into a finding.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import cast

from chat_shell.sealed.codes import AnswerReason, Confidence, GateCode, PolicyRefusal
from chat_shell.sealed.gate.case import canary_hits, read_protected_words
from chat_shell.sealed.gate.codebook import Codebook, compose_sentence
from chat_shell.sealed.gate.schema import MAX_REPLY_BYTES, read_object
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.verdicts import Blocked, Refused, Released, Verdict
from shared.disclosure import chinese, english
from shared.disclosure.canonical import Kind, Piece, pieces
from shared.disclosure.languages import Language
from shared.disclosure.own_words import OwnWords
from shared.disclosure.words import ProtectedWords, find_withheld
from shared.models.safe_summary import MAX_AREA_CHARACTERS, MAX_AREAS, MAX_FINDINGS, CodedFinding, Decision
from shared.models.values import JsonObject, JsonValue

NONE = "none"
"""What stands in a field that a finding does not use; providers want every field of a schema filled."""

MAX_OWN_AREAS = 8
"""Areas that are the user's own words."""

_LISTS = {
    "weakness": "weaknesses",
    "severity": "severities",
    "action": "actions",
    "strength": "strengths",
    "effect": "effects",
    "relation": "relations",
}
"""By field of a finding, the list of its codes."""

_FORMS = (("weakness", "severity", "action"), ("strength",), ("effect",), ("relation", "other"))
"""The fields of a finding beside its area: a finding has those of the first form that is complete."""

Form = tuple[str, str]
"""A sentence in English and in Chinese."""

_OBSERVED = {
    "weakness": ("{area}: {weakness} ({severity})", "{area}：{weakness}（{severity}）"),
    "strength": ("{area}: {strength}", "{area}：{strength}"),
}
_RISK = ("{area}: this can lead to {effect}", "{area}：可能导致{effect}")
_ADVICE = ("{area}: {action}", "{area}：{action}")
_SUMMARY = ("the findings rest on {support}; confidence is {confidence}", "结论依据{support}，把握{confidence}")
_GENERAL = ("in general", "总体")
"""The area of what is about no other one."""

_LEAST_SUPPORT = "one"


@dataclass(frozen=True, slots=True)
class TypedCase:
    """What the replies to one search can be about; `language` is that of the sentences."""

    book: Codebook
    areas: tuple[str, ...]
    canaries: frozenset[str]
    language: Language | None


def choose_areas(
    keywords: Iterable[str], last_message: str, chunks: Sequence[ProtectedChunk], language: Language | None
) -> tuple[str, ...]:
    """Return the owner's keywords and, as far as there is room, words of the user that anybody might say.

    Names, figures and rare words of the passages are no areas, so that no finding is about the subject of a record.
    """
    protected = read_protected_words(chunks)
    asked = dict.fromkeys(chain(*map(_topics, pieces(last_message))))
    own = islice((word for word in asked if _may_leave(word, protected)), MAX_OWN_AREAS)
    named = (" ".join(each.split()) for each in (*keywords, *own, _GENERAL[language is Language.CHINESE]))
    areas: dict[str, str] = {}
    for area in named:
        if area != NONE and 0 < len(area) <= MAX_AREA_CHARACTERS:
            areas.setdefault(area.casefold(), area)
    return tuple(areas.values())[:MAX_AREAS]


def describe_form(book: Codebook, areas: Sequence[str]) -> JsonObject:
    """Return the JSON schema of a reply."""
    fields = {field: [NONE, *book.lists[name]] for field, name in _LISTS.items()}
    finding = _object({"area": areas, **fields, "other": [NONE, *areas]})
    choices = {
        "decision": list(Decision),
        "reason": [NONE, *PolicyRefusal],
        "support": list(book.lists["supports"]),
        "confidence": list(Confidence),
    }
    form = _object(choices)
    properties = {**_properties(choices), "findings": {"type": "array", "items": finding}}
    return form | {"properties": properties, "required": list(properties)}


def judge_codes(reply: bytes, case: TypedCase) -> Verdict:
    """Release the sentences for the codes of a reply, or pass on its refusal."""
    hits = canary_hits([reply[: 4 * MAX_REPLY_BYTES].decode("utf-8", errors="replace")], case.canaries)
    if hits:
        return Blocked((GateCode.CANARY,), hits)
    form = read_object(reply)
    if form is None or form.get("decision") not in list(Decision):
        return Blocked((GateCode.SCHEMA,))
    if form["decision"] == Decision.REFUSE:
        reason = form.get("reason")
        return Refused(PolicyRefusal(str(reason)) if reason in list(PolicyRefusal) else PolicyRefusal.OUT_OF_SCOPE)
    findings = read_findings(form.get("findings"), case)
    return _say(findings, form, case) if findings else Blocked((GateCode.SCHEMA,))


def read_findings(given: object, case: TypedCase) -> tuple[CodedFinding, ...]:
    """Return the first findings that are complete, each once, in an order that tells nothing."""
    codes = {field: case.book.lists[name].keys() for field, name in _LISTS.items()} | {"other": case.areas}
    read = (_read_finding(item, case.areas, codes) for item in _objects_in(given))
    found = list(dict.fromkeys(finding for finding in read if finding is not None))[:MAX_FINDINGS]
    return tuple(sorted(found, key=lambda finding: _rank(finding, case)))


def _objects_in(given: object) -> Iterable[Mapping[str, object]]:
    items = cast("list[object]", given) if isinstance(given, list) else []
    return (cast("dict[str, object]", item) for item in items if isinstance(item, dict))


def _read_finding(
    item: Mapping[str, object], areas: Sequence[str], codes: Mapping[str, Iterable[str]]
) -> CodedFinding | None:
    area = item.get("area")
    for form in _FORMS:
        said = {field: item.get(field) for field in form}
        if area in areas and area != said.get("other") and all(said[field] in [*codes[field]] for field in form):
            return CodedFinding.model_validate({"area": area, **said})
    return None


def _rank(finding: CodedFinding, case: TypedCase) -> tuple[int, ...]:
    """Order by severity, the worst first, then by the places in the lists."""
    severity = [NONE, *case.book.lists["severities"]].index(finding.severity or NONE)
    places = ([NONE, *case.book.lists[name]].index(getattr(finding, field) or NONE) for field, name in _LISTS.items())
    others = ["", *case.areas]
    return -severity, others.index(finding.area), *places, others.index(finding.other or "")


def _say(findings: Sequence[CodedFinding], form: Mapping[str, object], case: TypedCase) -> Released:
    given = [_phrases(finding, case) for finding in findings]
    confidence = Confidence(_choose(form, "confidence", [*Confidence], Confidence.LOW))
    support = _choose(form, "support", [*case.book.lists["supports"]], _LEAST_SUPPORT)
    summed = {
        "support": case.book.phrase("supports", support, case.language),
        "confidence": case.book.phrase("confidences", confidence, case.language),
    }
    related = (compose_sentence(one["relation"], one, case.language) for one in given if "relation" in one)
    return Released(
        reason=AnswerReason.DIAGNOSIS,
        summary=_sentence(_SUMMARY, summed, case),
        observations=(*_sentences(_OBSERVED, given, case), *related),
        risks=_sentences({"effect": _RISK}, given, case),
        recommended_actions=_sentences({"action": _ADVICE}, given, case),
        confidence=confidence,
        findings=tuple(findings),
    )


def _choose(form: Mapping[str, object], field: str, choices: Sequence[str], otherwise: str) -> str:
    return str(form[field]) if form.get(field) in choices else otherwise


def _sentences(forms: Mapping[str, Form], given: Iterable[Mapping[str, str]], case: TypedCase) -> tuple[str, ...]:
    """Return a sentence for each finding and field that it has, of those for which there is a form."""
    return tuple(_sentence(forms[field], one, case) for one in given for field in forms if field in one)


def _phrases(finding: CodedFinding, case: TypedCase) -> dict[str, str]:
    said = finding.model_dump()
    return {
        field: case.book.phrase(_LISTS[field], value, case.language) if field in _LISTS else value
        for field, value in said.items()
    }


def _sentence(forms: Form, given: Mapping[str, str], case: TypedCase) -> str:
    return compose_sentence(forms[case.language is Language.CHINESE], given, case.language)


def _topics(piece: Piece) -> Iterable[str]:
    if piece.kind is Kind.HAN:
        return [word for word in chinese.segment(piece.text) if len(word) > 1 and not chinese.is_function_han(word)]
    is_topic = piece.kind is Kind.WORD and piece.text.isalpha() and not english.is_function_word(piece.text)
    return [piece.text] if is_topic else []


def _may_leave(word: str, protected: ProtectedWords) -> bool:
    return not any(find_withheld(pieces(word), OwnWords.of(""), protected))


def _properties(choices: Mapping[str, Sequence[str]]) -> dict[str, JsonValue]:
    return {name: {"type": "string", "enum": list(codes)} for name, codes in choices.items()}


def _object(choices: Mapping[str, Sequence[str]]) -> JsonObject:
    properties = _properties(choices)
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": list(properties)}
