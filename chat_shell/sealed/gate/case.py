"""What a search's chunks forbid, read once for its first reply and its rewrite."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from chat_shell.sealed.protected import ProtectedChunk
from shared.disclosure.combinations import Combinations
from shared.disclosure.folding import fold
from shared.disclosure.frame import USUAL_RULES, BaseRules, Support
from shared.disclosure.languages import Language, language_of
from shared.disclosure.outlines import Outline, outline, outlines_of
from shared.disclosure.own_words import MAX_USER_CHARACTERS, OwnWords
from shared.disclosure.passages import Passages, index_passages
from shared.disclosure.readings import HiddenTerms
from shared.disclosure.source import SourceText, join_readings, read_source
from shared.disclosure.subjects import PlacedText, find_roles, find_subjects
from shared.disclosure.words import ProtectedWords
from shared.plain_text.normal_form import split_words
from shared.plain_text.reading import as_read


@dataclass(frozen=True, slots=True, repr=False)
class GateCase:
    """The chunks and the user's words in the forms that the checks compare; it prints nothing of them.

    `subjects` are those that the user names; `roles`, of records alone, stand for a subject whoever names it.
    """

    own: OwnWords
    language: Language | None
    words: ProtectedWords
    combinations: Combinations
    hidden: HiddenTerms
    passages: tuple[Passages, ...]
    outlines: tuple[Outline, ...]
    support: Support
    subjects: frozenset[str]
    roles: frozenset[str]
    canaries: frozenset[str]


def prepare(
    chunks: Sequence[ProtectedChunk],
    user_words: str,
    canaries: Sequence[str],
    siblings: Sequence[ProtectedChunk] = (),
    language: Language | None = None,
    rules: BaseRules = USUAL_RULES,
) -> GateCase:
    """Read the chunks of one search.

    Args:
        chunks: All that the secondary model is shown.
        user_words: What the user wrote in this conversation, never what a model wrote for them.
        canaries: The tokens planted for this request; those of the documents are in the chunks.
        siblings: Other chunks of the same documents, which the secondary model does not see.
        language: That of the question, which the answer has to have; by default that of the user's words.
        rules: What the owners of the bases have said of them.
    """
    newest = user_words[-MAX_USER_CHARACTERS:]
    own, sources = OwnWords.of(newest), [*map(_source, chunks)]
    readings = [*map(read_source, sources)]
    shown = join_readings(readings)
    both = join_readings((*readings, *map(read_source, map(_source, siblings))))
    words, roles = ProtectedWords.of(shown, both, own), _find_roles((*chunks, *siblings), rules)
    return GateCase(
        own=own,
        language=language or language_of(newest) or language_of("\n".join(source.text for source in sources)),
        words=words,
        combinations=Combinations.of(shown, both, readings, own),
        hidden=HiddenTerms.of(shown, both, own),
        passages=index_passages([*chain(*map(_texts, sources))], fold(newest)),
        outlines=tuple(_outlines(chunks)),
        support=Support.of((source.title for source in sources), readings, rules.support),
        subjects=frozenset((*_find_named(newest, own, words), *filter(own.holds_content, roles))),
        roles=roles if rules.has_records else frozenset(),
        canaries=fold_canaries((*canaries, *(chunk.canary.reveal() for chunk in chunks))),
    )


def names_record(user_words: str, chunks: Iterable[ProtectedChunk], rules: BaseRules) -> bool:
    """Say whether a question names by its role the subject of a record; one about a whole base names none."""
    own = OwnWords.of(user_words)
    return rules.has_records and any(map(own.holds_content, _find_roles(chunks, rules)))


def read_protected_words(chunks: Sequence[ProtectedChunk]) -> ProtectedWords:
    """Read which words of chunks may not leave, whoever wrote them first."""
    shown = join_readings(map(read_source, map(_source, chunks)))
    return ProtectedWords.of(shown, shown, OwnWords.of(""))


def _find_named(user_words: str, own: OwnWords, protected: ProtectedWords) -> Iterator[str]:
    """Yield the subjects of the chunks that the user names."""
    source = protected.both
    yield from (word for word in find_subjects(user_words) if word in source.words or word in source.han)
    yield from filter(own.holds, source.names.certain | (source.names.capital & protected.names))
    yield from filter(own.holds_han, source.persons)


def _find_roles(chunks: Iterable[ProtectedChunk], rules: BaseRules) -> frozenset[str]:
    sources = map(_source, chunks)
    return find_roles([PlacedText((source.title, *source.headings), source.text) for source in sources], rules)


def _source(chunk: ProtectedChunk) -> SourceText:
    headings = tuple(heading.reveal() for heading in chunk.heading_path)
    return SourceText(chunk.document.reveal(), headings, chunk.text.reveal())


def _texts(source: SourceText) -> Iterator[str]:
    """Yield, folded, what can be retold of a chunk: its words as read and, where links part them, as written."""
    written, read = fold(source.text), fold(as_read(source.text))
    yield read
    if split_words(read) != split_words(written):
        yield written
    yield fold(" ".join((source.title, *source.headings)))


def _outlines(chunks: Sequence[ProtectedChunk]) -> Iterator[Outline]:
    yield from chain.from_iterable(outlines_of(chunk.text.reveal()) for chunk in chunks)
    in_order = sorted(chunks, key=_place)
    for _, same in groupby(in_order, key=lambda chunk: _place(chunk)[:2]):
        yield outline(heading.reveal() for chunk in same for heading in chunk.heading_path)
    yield outline(dict.fromkeys(chunk.document.reveal() for chunk in in_order))


def _place(chunk: ProtectedChunk) -> tuple[str, str, int]:
    return chunk.knowledge_base_id, chunk.document.reveal(), chunk.ordinal


_SHORTEST = 6


def fold_canaries(tokens: Iterable[str]) -> frozenset[str]:
    """Return tokens in the form in which they are looked for: letters and digits alone."""
    return frozenset(bare for token in tokens if len(bare := _bare(token)) >= _SHORTEST)


def canary_hits(texts: Iterable[str], canaries: frozenset[str]) -> int:
    """Count the tokens that stand in a text, forwards or backwards, whatever was put between their characters."""
    bare = [_bare(text) for text in texts]
    return sum(1 for token in canaries if any(token in text or token[::-1] in text for text in bare))


def _bare(text: str) -> str:
    return "".join(character for character in fold(text) if character.isalnum())
