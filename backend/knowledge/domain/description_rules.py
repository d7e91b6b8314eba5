"""The gate's rules of words and combinations, applied to what an owner writes of a base.

Nobody has asked anything when a description is shown, so that no word counts as the reader's own. All of this reads
the word lists and takes milliseconds: callers keep it off the event loop.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from backend.knowledge.domain.knowledge import KnowledgeBase
from backend.search.domain.chunks import ChunkHit
from shared.disclosure import chinese, english
from shared.disclosure.canonical import CLAUSES, Kind, Piece, compose, parts_of, pieces, unreadable
from shared.disclosure.combinations import Combinations, containment_findings, find_retellings, term_findings
from shared.disclosure.own_words import OwnWords
from shared.disclosure.source import SourceText, join_readings, read_source
from shared.disclosure.words import Finding, ProtectedWords, find_rejoined, find_repeated, find_withheld
from shared.models.safe_summary import GateCode
from shared.models.values import Value
from shared.plain_text.orders import is_order_to_model

NEUTRAL_NAME = "Knowledge base"
"""What stands for the name of a base whose own name reveals its content."""


class LeftOut(Value):
    """Why a text is not shown: the checks that it fails, and its words and phrases that fail them."""

    codes: tuple[GateCode, ...]
    phrases: tuple[str, ...]


def list_described_texts(base: KnowledgeBase) -> tuple[str, ...]:
    """Return the name, the hint, where there is one, and the keywords; each is shown or left out as a whole."""
    texts = (base.name, base.routing_hint, *base.routing_keywords)
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def places_of(base: KnowledgeBase, left_out: Mapping[str, LeftOut]) -> dict[str, LeftOut]:
    """Return the verdicts by the fields that hold the texts, in the notation of errors: `routing_keywords[0]`."""
    return {place: left_out[text] for place, text in _fields(base) if text in left_out}


def without_texts(base: KnowledgeBase, left_out: Mapping[str, LeftOut]) -> KnowledgeBase:
    """Return a base as restricted members may see it: no summary, no topics, none of these texts."""
    changes = {
        "name": NEUTRAL_NAME if base.name in left_out else base.name,
        "summary": "",
        "topics": (),
        "routing_hint": "" if base.routing_hint in left_out else base.routing_hint,
        "routing_keywords": tuple(word for word in base.routing_keywords if word not in left_out),
    }
    return base.model_copy(update=changes)


def _fields(base: KnowledgeBase) -> Iterator[tuple[str, str]]:
    yield "name", base.name
    yield "routing_hint", base.routing_hint
    yield from ((f"routing_keywords[{place}]", word) for place, word in enumerate(base.routing_keywords))


MAX_PHRASES = 20
"""Words and phrases of a text that its owner is told of."""

MAX_CLAUSES = 6
"""Clauses of a text that are searched each by itself."""

KEPT_READINGS = 256
"""Chunks that are remembered as read, some 14 MB of them: after a change of a base most of them are read again."""

_read = lru_cache(maxsize=KEPT_READINGS)(read_source)
_ENDINGS = ("", "e", "y", "s", "es", "ed", "ing", "ings", "ies", "ied", "ly")
"""What the rules cut off or add before they compare words, and the search index does not."""


def queries_of(text: str) -> tuple[str, ...]:
    """Return searches that bring the chunks with which a text has to be compared, the most telling one first.

    The words that are not everyday come first, as a single chunk that holds one is enough to withhold it; then each
    clause by itself, because a term is found best by its own words; then the whole text as it is written.
    """
    found = pieces(text)
    unusual = [form for piece in found for form in _unusual(piece)]
    clauses = [" ".join(form for piece in clause for form in _forms(piece)) for clause in parts_of(found, CLAUSES)]
    return tuple(dict.fromkeys(query for query in (" ".join(unusual), *clauses[:MAX_CLAUSES], text) if query))


def why_left_out(text: str, hits: Sequence[ChunkHit], *, shares_run: bool) -> LeftOut | None:
    """Judge a text beside chunks of its base; None for one that may be shown.

    `shares_run` says that the text shares a long run of words with the base.
    """
    sources = [SourceText(hit.document_name, hit.chunk.heading_path, hit.chunk.text) for hit in hits]
    findings = [*_findings(text, sources), *([Finding(GateCode.OVERLAP, "")] if shares_run else ())]
    if not findings:
        return None
    codes = {finding.code for finding in findings}
    phrases = tuple(dict.fromkeys(finding.phrase for finding in findings if finding.phrase))
    return LeftOut(codes=tuple(code for code in GateCode if code in codes), phrases=phrases[:MAX_PHRASES])


def _findings(text: str, sources: Sequence[SourceText]) -> Iterator[Finding]:
    own = OwnWords.of("")
    readings = [_read(source) for source in sources]
    shown = join_readings(readings)
    words, combinations = ProtectedWords.of(shown, shown, own), Combinations.of(shown, shown, readings, own)
    found = pieces(text)
    canonical = compose(found, {})
    yield from (Finding(GateCode.MARKUP, sign) for sign in sorted(unreadable(text)))
    yield from find_withheld(found, own, words)
    yield from find_repeated(found)
    yield from find_rejoined([found], own, words)
    yield from term_findings(canonical, combinations, own)
    yield from containment_findings(canonical, combinations, own)
    yield from find_retellings([found], combinations, own)
    if is_order_to_model(text) or is_order_to_model(canonical):
        yield Finding(GateCode.INSTRUCTION, "")


def _unusual(piece: Piece) -> Iterator[str]:
    if piece.kind is Kind.HAN:
        yield from (word for word in chinese.segment(piece.text) if not chinese.is_everyday_han(word))
    elif piece.kind is Kind.WORD and not english.is_everyday(piece.text.removesuffix("'s")):
        yield from _forms(piece)


def _forms(piece: Piece) -> Iterator[str]:
    """Yield a stretch of Chinese, or a word with its regular forms; of words that join others nothing."""
    if piece.kind is Kind.HAN:
        yield piece.text
    elif not english.is_function_word(piece.text):
        yield piece.text
        yield from (english.stem_of(piece.text) + ending for ending in _ENDINGS if piece.text.isalpha())
