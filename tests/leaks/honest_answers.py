"""An honest analyst answers 24 questions in both grades, as the gate lets it out, for `tests.leaks.usefulness`."""

import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.gate.codebook import read_shipped
from chat_shell.sealed.gate.typed import TypedCase, choose_areas, judge_codes
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.verdicts import Released, Verdict
from shared.disclosure.languages import language_of
from tests.leaks.chunks import sealed_chunk

_HONEST = Path(__file__).parent / "strangers" / "honest_findings.toml"


def write_answers() -> Iterator[dict[str, str]]:
    """Yield each question with the analyst's points as prose, and as the codes that say them."""
    read = tomllib.loads(_HONEST.read_text(encoding="utf-8"))
    for asked in read["questions"]:
        text: str = read["documents"][asked["document"]]
        chunks = [sealed_chunk(asked["document"], "a.md", at, (), part) for at, part in enumerate(text.split("\n\n"))]
        yield {"question": asked["asks"], "open": _in_prose(asked, chunks), "strict": _in_codes(asked, chunks)}


def _in_prose(asked: dict[str, Any], chunks: Sequence[ProtectedChunk]) -> str:
    """Say the points in plain words; what the gate holds of them is left out, as a rewrite would leave it out."""
    case, kept = prepare(chunks, asked["asks"], ()), list[tuple[str, str]]()
    for pair in asked["findings"]:
        state, action = (f"{part[:1].upper()}{part[1:]}." if part.isascii() else f"{part}。" for part in pair)
        if isinstance(judge(_prose([*kept, (state, action)]), case), Released):
            kept.append((state, action))
    return _said(judge(_prose(kept), case)) if kept else "-"


def _prose(points: Sequence[tuple[str, str]]) -> bytes:
    (first, _), states, actions = points[0], [state for state, _ in points[1:]], [action for _, action in points]
    form = {"decision": "answer", "reason": "gap", "summary": first, "observations": states, "risks": []}
    return json.dumps({**form, "recommended_actions": actions, "confidence": "high"}).encode()


def _in_codes(asked: dict[str, Any], chunks: Sequence[ProtectedChunk]) -> str:
    book, language = read_shipped(), language_of(asked["asks"])
    areas, findings = choose_areas((), asked["asks"], chunks, language), list[dict[str, str]]()
    for state, action in asked["says"]:
        kind = "weakness" if state in book.lists["weaknesses"] else "strength"
        finding = {"area": areas[0], kind: state}
        findings.append(finding | {"severity": "high", "action": action} if kind == "weakness" else finding)
    form = {"decision": "answer", "reason": "none", "support": "one", "confidence": "high", "findings": findings}
    return _said(judge_codes(json.dumps(form).encode(), TypedCase(book, areas, frozenset(), language)))


def _said(verdict: Verdict) -> str:
    assert isinstance(verdict, Released)
    parts = (verdict.summary, *verdict.observations, *verdict.risks, *verdict.recommended_actions)
    return "\n".join(f"- {part}" for part in parts)
