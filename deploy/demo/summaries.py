"""The demo model as the secondary model: a safe summary in the agreed form, and a refusal when unsure.

It understands nothing. What it says of the evidence it reads off its shape (are there terms, exceptions, approvals,
amounts?), in general words, without a figure or a name; so it is true, thin, and marked as of low confidence.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from deploy.demo.sentences import is_chinese

_KEYS = ("decision", "reason", "summary", "confidence")
_QUERY_BLOCK = re.compile(r"<(?:\w+[-_])?(query|question)\b([\w-]*)[^>]*>(.*?)</(?:\w+[-_])?\1\2>", re.DOTALL | re.I)
_EVIDENCE_BLOCK = re.compile(r"<evidence\b([\w-]*)[^>]*>(.*)</evidence\1>", re.DOTALL)
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
    ("policy_probe", r"\bprotected\b|\brestricted\b|\bhidden\b|受保护|保密|受限"),
)
_REASONS = (
    ("risk", r"\brisk|danger|threat|风险|隐患"),
    ("gap", r"\bgap|missing|lack|weak|差距|不足|缺|薄弱"),
    ("priority", r"priorit|most important|first\b|优先|重点"),
    ("diagnosis", r"diagnos|\bwhy\b|problem|cause|诊断|原因|问题"),
    ("advice", r"advi[cs]e|recommend|improv|should|suggest|建议|改进|应该|怎么办"),
)

_SHAPES: tuple[tuple[str, tuple[str, str], tuple[str, str]], ...] = (
    (
        r"\b(?:unless|except|beyond|provided)\b|除非|除外|未申报|超过",
        (
            "Exceptions soften what otherwise holds, and whoever grants them carries the danger of doing it unevenly.",
            "例外会削弱平时的做法，批准例外的人若尺度不同，容易引起争议。",
        ),
        ("Agree on who may grant exceptions, and look at them together.", "先商定谁可以批准例外，再一起复盘。"),
    ),
    (
        r"\b(?:within|before|until|ends?|renews?|deadline)\b|期间|以内|之前|期限|截止",
        (
            "Some commitments depend on time, and lapse silently if nobody watches them.",
            "部分承诺与时间有关，若没人盯着，很可能在不知不觉中错过。",
        ),
        ("Give an owner to whatever can lapse.", "给容易错过的事项安排负责人。"),
    ),
    (
        r"\b(?:approv|sign|manager|director|owner)\w*|批准|签字|审批|经理|主管",
        (
            "Decisions wait for approval, so unclear ownership would slow them down.",
            "决定要等人批准，职责不清会拖慢进度。",
        ),
        ("Make clear who decides when the usual person is away.", "明确平时的决策者不在时由谁决定。"),
    ),
    (
        r"\b(?:pay|pays|fee|euros?|dollars?|cost)\w*|赔付|费用|元",
        (
            "Money is tied to conditions, and wrong assumptions about these would be costly.",
            "钱款与条件挂钩，对条件理解有误会带来损失。",
        ),
        ("Check assumptions about money with the people responsible.", "涉及钱款时，先向责任人核对理解。"),
    ),
)
_NOTHING_SEEN = (
    "The material bears on this. Responsibilities and conditions seem worth a closer look before anything is agreed.",
    "材料与此有关。在作出决定之前，职责与条件值得再看。",
)
_SUMMARY = (
    "The material bears on this. Judging by its shape alone, who owns and who watches what deserves a closer look.",
    "材料与此有关。单看写法，职责与跟进值得再看。",
)
_ACTION = ("Talk to the owner of the knowledge base before deciding.", "决定之前请咨询知识库的负责人。")
_MAX_ITEMS = 3


def safe_summary(texts: Sequence[str]) -> str | None:
    """Return the summary's JSON text when the messages ask for one; None when they do not.

    A request for one demands JSON and names the keys of the form.
    """
    if not any(_asks_for_summary(text) for text in texts):
        return None
    said = "\n".join(text for text in texts if not _asks_for_summary(text)) or texts[-1]
    evidence = _EVIDENCE_BLOCK.search(said)
    return json.dumps(_summary(_query(said), evidence[2] if evidence else ""), ensure_ascii=False)


def _asks_for_summary(text: str) -> bool:
    return "json" in text.lower() and all(re.search(f"[\"'`]{key}[\"'`]", text) for key in _KEYS[:3])


def _query(text: str) -> str:
    if block := _QUERY_BLOCK.search(text):
        return block[3]
    line = _QUERY_LINE.search(text)
    return line[1] if line else text[:_QUERY_CHARACTERS]


def _summary(query: str, evidence: str) -> dict[str, Any]:
    refusal, reason = _first(_POLICY, query), _first(_REASONS, query)
    if refusal is not None or reason is None:
        return _form("refuse", refusal or "out_of_scope", "")
    language = int(is_chinese(query))
    seen = [shape for shape in _SHAPES if re.search(shape[0], evidence, re.IGNORECASE)][:_MAX_ITEMS]
    form = _form("answer", reason, (_SUMMARY if seen else _NOTHING_SEEN)[language])
    form["risks" if reason == "risk" else "observations"] = [sentence[language] for _, sentence, _ in seen]
    form["recommended_actions"] = [action[language] for _, _, action in seen] or [_ACTION[language]]
    return form


def _first(patterns: Sequence[tuple[str, str]], text: str) -> str | None:
    return next((name for name, pattern in patterns if re.search(pattern, text, re.IGNORECASE)), None)


def _form(decision: str, reason: str, summary: str) -> dict[str, Any]:
    return {
        "decision": decision,
        "reason": reason,
        "summary": summary,
        "observations": [],
        "risks": [],
        "recommended_actions": [],
        "confidence": "low",
    }
