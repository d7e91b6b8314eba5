"""The demo model as the secondary model: a safe summary in the agreed form, generic, and a refusal when unsure."""

import json
import re
from collections.abc import Sequence
from typing import Any

from deploy.demo.sentences import is_chinese

_KEYS = ("decision", "reason", "summary", "confidence")
_QUERY_BLOCK = re.compile(r"<(?:\w+[-_])?(?:query|question)\b[^>]*>(.*?)</", re.DOTALL | re.IGNORECASE)
_QUERY_LINE = re.compile(r"^\s*(?:query|question)\s*:\s*(.+)$", re.MULTILINE | re.IGNORECASE)
_QUERY_CHARACTERS = 500

_POLICY = (
    (
        "exact_value",
        r"how (?:much|many|long|often)|\bexact|\bfigure|\bnumber|\bprice|\bdate\b|多少|几|数字|价格|日期|具体",
    ),
    ("verbatim", r"\bquote|verbatim|word for word|原文|逐字|引用"),
    ("enumeration", r"\blist (?:all|every)|\benumerate|列出|所有"),
    ("definition", r"\bdefin(?:e|ition)|what does .* mean|定义|含义"),
)
_REASONS = (
    ("risk", r"\brisk|danger|threat|风险|隐患"),
    ("gap", r"\bgap|missing|lack|weak|差距|不足|缺"),
    ("priority", r"priorit|most important|first\b|优先|重点"),
    ("diagnosis", r"diagnos|\bwhy\b|problem|cause|诊断|原因|问题"),
    ("advice", r"advi[cs]e|recommend|improv|should|suggest|建议|改进|应该|怎么办"),
)
_SUMMARY = (
    "The material bears on this. Responsibilities and conditions seem worth a closer look before anything is agreed.",
    "材料与此有关。在作出决定之前，职责与条件值得再看。",
)
_ACTION = ("Talk to the owner of the knowledge base before deciding.", "决定之前请咨询知识库的负责人。")


def safe_summary(texts: Sequence[str]) -> str | None:
    """Return the summary's JSON text when the messages ask for one; None when they do not.

    A request for one demands JSON and names the keys of the form.
    """
    instruction = next((text for text in texts if _asks_for_summary(text)), None)
    return None if instruction is None else json.dumps(_summary(_query(texts[-1])), ensure_ascii=False)


def _asks_for_summary(text: str) -> bool:
    return "json" in text.lower() and all(re.search(f"[\"'`]{key}[\"'`]", text) for key in _KEYS[:3])


def _query(text: str) -> str:
    found = _QUERY_BLOCK.search(text) or _QUERY_LINE.search(text)
    return found.group(1) if found else text[:_QUERY_CHARACTERS]


def _summary(query: str) -> dict[str, Any]:
    refusal, reason = _first(_POLICY, query), _first(_REASONS, query)
    if refusal is not None or reason is None:
        return _form("refuse", refusal or "out_of_scope", "", [])
    language = int(is_chinese(query))
    return _form("answer", reason, _SUMMARY[language], [_ACTION[language]])


def _first(patterns: Sequence[tuple[str, str]], text: str) -> str | None:
    return next((name for name, pattern in patterns if re.search(pattern, text, re.IGNORECASE)), None)


def _form(decision: str, reason: str, summary: str, actions: list[str]) -> dict[str, Any]:
    return {
        "decision": decision,
        "reason": reason,
        "summary": summary,
        "observations": [],
        "risks": [],
        "recommended_actions": actions,
        "confidence": "low",
    }
