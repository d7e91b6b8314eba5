"""The demo model as the secondary model: a safe summary in the agreed form, and a refusal when unsure.

It understands nothing. It recognises topics in the query and in the passages that fit it best, and says of these what
often holds, without a figure or a name; so it is thin, and marked as of low confidence. Asked for details, it quotes a
passage in its first answer, as a careless model would, so that the gate is seen at work.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from chat_shell.sealed.pre_screen import pre_screen
from deploy.demo.sentences import Passage, best_quotes, is_chinese, terms
from deploy.demo.topics import ANYTHING, Words, topics_of
from shared.models.safe_summary import PolicyRefusal
from shared.prompts.safe_summary import REWRITE_PROMPT

_KEYS = ("decision", "reason", "summary", "confidence")
_QUERY_BLOCK = re.compile(r"<(?:\w+[-_])?(query|question)\b([\w-]*)[^>]*>(.*?)</(?:\w+[-_])?\1\2>", re.DOTALL | re.I)
_EVIDENCE_BLOCK = re.compile(r"<evidence\b([\w-]*)[^>]*>(.*)</evidence\1>", re.DOTALL)
_AREAS_BLOCK = re.compile(r"<areas\b([\w-]*)>\n(.*?)\n</areas\1>", re.DOTALL)
_QUERY_LINE = re.compile(r"^\s*(?:query|question)\s*:\s*(.+)$", re.MULTILINE | re.IGNORECASE)
_QUERY_CHARACTERS = 500

_REASONS = (
    ("risk", r"\brisk|danger|threat|go wrong|single point|worr|harm|风险|隐患|隐忧|危险|担心|坏处|脆弱"),
    ("gap", r"\bgap|missing|lack|weak|exposed|fragile|enough|差距|不足|缺|弱|漏洞|短板|够"),
    ("priority", r"priorit|most important|first\b|优先|重点|下一步"),
    ("diagnosis", r"diagnos|\bwhy\b|problem|cause|how well|reliabl|robust|诊断|原因|根源|问题|为什么|可靠"),
    ("advice", r"advi[cs]e|recommend|improv|should|suggest|how (?:can|could)|建议|改进|应该|怎么|怎样|如何"),
)

_LEADS = {"risk": "risk", "priority": "action", "advice": "action"}
"""With what a summary begins where not with the topic's own sentence."""

_LISTS = {"observations": "observation", "risks": "risk", "recommended_actions": "action"}
_MAX_TOPICS = 2
_DETAILS = re.compile(r"\bdetail|详细|细节", re.IGNORECASE)
_REWRITES = REWRITE_PROMPT.partition("{")[0]


def safe_summary(texts: Sequence[str]) -> str | None:
    """Return the summary's JSON text when the messages ask for one; None when they do not.

    A request for one demands JSON and names the keys of the form.
    """
    if any(_asks_for_codes(text) for text in texts):
        return json.dumps(_choose_findings("\n".join(texts)), ensure_ascii=False)
    if not any(_asks_for_summary(text) for text in texts):
        return None
    said = "\n".join(text for text in texts if not _asks_for_summary(text)) or texts[-1]
    query, chunks = _query(said), _chunks(said)
    form = _summary(query, chunks)
    if form["decision"] == "answer" and _DETAILS.search(query) and _REWRITES not in said:
        quotes = best_quotes(query, [Passage(1, "", chunk) for chunk in chunks], at_most=1)
        form["summary"] = " ".join([form["summary"], *(quote.text for quote in quotes)])
    return json.dumps(form, ensure_ascii=False)


def _asks_for_summary(text: str) -> bool:
    return "json" in text.lower() and all(re.search(f"[\"'`]{key}[\"'`]", text) for key in _KEYS[:3])


def _asks_for_codes(text: str) -> bool:
    return "json" in text.lower() and all(f'"{key}"' in text for key in ("findings", "weakness", "severity"))


def _choose_findings(text: str) -> dict[str, Any]:
    """Say of the first area what often holds, and refuse what the pre-screen would."""
    query, areas = _query(text), _AREAS_BLOCK.search(text)
    refusal = pre_screen(query, query)
    if refusal is not None or areas is None:
        return {"decision": "refuse", "reason": refusal or PolicyRefusal.OUT_OF_SCOPE, "findings": []}
    often = {"weakness": "no_owner", "severity": "medium", "action": "name_owner"}
    form = {"decision": "answer", "reason": "none", "support": "one", "confidence": "low"}
    return form | {"findings": [{"area": areas[2].splitlines()[0], **often}]}


def _query(text: str) -> str:
    if block := _QUERY_BLOCK.search(text):
        return block[3]
    line = _QUERY_LINE.search(text)
    return line[1] if line else text[:_QUERY_CHARACTERS]


def _chunks(text: str) -> list[str]:
    evidence = _EVIDENCE_BLOCK.search(text)
    if evidence is None:
        return []
    marker = re.escape(evidence[1])
    return re.findall(rf"<chunk{marker}>(.*?)</chunk{marker}>", evidence[2], re.DOTALL)


def _summary(query: str, chunks: Sequence[str]) -> dict[str, Any]:
    best, reason = _best(query, chunks), _reason(query)
    is_in_scope = reason or topics_of(query) or terms(query) & terms(best)
    refusal = pre_screen(query, query) or (None if is_in_scope else PolicyRefusal.OUT_OF_SCOPE)
    if refusal is not None:
        return _form("refuse", refusal.value, "")
    topics = topics_of(query, best)[:_MAX_TOPICS] or [ANYTHING]
    return _answer(reason or "diagnosis", [topic.words[is_chinese(query)] for topic in topics])


def _answer(reason: str, topics: Sequence[Words]) -> dict[str, Any]:
    """Begin with what the question is after, and say the rest in the lists."""
    lead = getattr(topics[0], _LEADS.get(reason, "summary"))
    lists = {key: [text for each in topics if (text := getattr(each, name)) != lead] for key, name in _LISTS.items()}
    if lead != topics[0].summary:
        lists["observations"] = [topics[0].summary, *lists["observations"]][:_MAX_TOPICS]
    return _form("answer", reason, lead) | lists


def _best(query: str, chunks: Sequence[str]) -> str:
    """Return the chunks that share most terms with the query, or all of them where none shares any."""
    wanted = terms(query)
    shared = [len(wanted & terms(chunk)) for chunk in chunks]
    return "\n".join(chunk for chunk, count in zip(chunks, shared, strict=True) if count == max(shared))


def _reason(query: str) -> str | None:
    return next((name for name, pattern in _REASONS if re.search(pattern, query, re.IGNORECASE)), None)


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
