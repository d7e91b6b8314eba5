"""Figures in outgoing text are replaced by a fixed mark, unless the user wrote them or they are small counts.

What is replaced depends on the text and on the user's own words alone, never on what a base holds. It does not depend
on the pieces in which the text arrives either.
"""

from collections.abc import Iterator
from typing import NamedTuple

from backend.restricted.domain.figure_rows import FigurePart, Row, TokenView, Undecided, continuation, row_at
from backend.restricted.domain.figure_tokens import MAX_UNSEEN, UNSEEN, Token, fold_character, tokens_in
from backend.restricted.domain.figure_values import Amount, amounts_of, whole_value
from shared.prompts.knowledge_base import CHINESE_FIGURE_WITHHELD, FIGURE_WITHHELD

MAX_COUNT, MAX_ORDINAL = 12, 10
"""Counts without a unit and ordinals up to these stay, so that an answer stays an answer."""

MAX_LIST_MARKER = 99
"""The numbers of a list stay up to here, as long as each is one more than the one before."""

_LIST_SIGNS = frozenset(".)")
_LINE_LEADS = frozenset("#*>-+_(|")
_ORDINAL = "第"


class OwnFigures:
    """The figures that the user wrote, and whether they write Chinese; `keeps_citations` lets markers `[n]` stay."""

    def __init__(self, text: str, *, keeps_citations: bool = False) -> None:
        reader = _FigureReader(_Context())
        reader.add(text)
        rows = [piece.row for piece in reader.pieces(is_over=True) if piece.row is not None]
        self._amounts = frozenset(amount for row in rows for amount in amounts_of(row))
        self._values = frozenset(amount.value for amount in self._amounts)
        self.is_chinese = reader.context.is_chinese
        self.keeps_citations = keeps_citations

    def hold(self, row: Row) -> bool:
        """Tell whether the user wrote every amount of a figure."""
        return all(map(self._holds, amounts_of(row)))

    def _holds(self, amount: Amount) -> bool:
        is_bare = not amount.unit or amount.is_telling
        return amount in self._amounts or (is_bare and amount.value in self._values)


class FigureMarks:
    """Replaces the figures of one text: `add` to it, then take what is `settled`."""

    def __init__(self, own: OwnFigures) -> None:
        self._own = own
        self._reader = self._new_reader()

    def add(self, text: str) -> None:
        """Append text."""
        self._reader.add(text)

    def take_settled(self) -> list[str]:
        """Return for each character that is settled now what takes its place: itself, a mark, or ""."""
        return self._show(is_over=False)

    def finish(self, *, goes_on: bool) -> list[str]:
        """Return the rest. Where the text `goes_on` behind an interruption, a figure at its very end is withheld."""
        shown = self._show(is_over=True, withholds_last=goes_on)
        if not goes_on:
            self._reader = self._new_reader()
        return shown

    def _new_reader(self) -> "_FigureReader":
        return _FigureReader(_Context(is_chinese=self._own.is_chinese))

    def _show(self, *, is_over: bool, withholds_last: bool = False) -> list[str]:
        shown: list[str] = []
        for piece in self._reader.pieces(is_over=is_over):
            is_last = withholds_last and piece.is_last
            if piece.is_swallowed:
                shown.extend([""] * len(piece.text))
            elif piece.row is None or not (is_last or self._is_withheld(piece)):
                shown.extend(piece.text)
            elif piece.text:
                mark = CHINESE_FIGURE_WITHHELD if piece.is_chinese else FIGURE_WITHHELD
                shown.extend([mark, *[""] * (len(piece.text) - 1)])
                self._reader.swallow_behind(piece.row)
        return shown

    def _is_withheld(self, piece: "_Piece") -> bool:
        if piece.row is None or piece.is_list_marker or (piece.is_cited and self._own.keeps_citations):
            return False
        return not _is_small(piece) and not self._own.hold(piece.row)


def mark_figures(text: str, own: OwnFigures) -> str:
    """Return a whole text with its figures replaced."""
    marks = FigureMarks(own)
    marks.add(text)
    return "".join(marks.finish(goes_on=False))


class _Context(NamedTuple):
    """What stands before a token: whether only list signs precede it on its line, and what the last sign was."""

    is_line_start: bool = True
    is_chinese: bool = False
    is_inside_word: bool = False
    before: str = ""

    def behind(self, token: Token) -> "_Context":
        is_lead = token.kind == "blank" or token.text in _LINE_LEADS
        is_word = token.kind == "word"
        return _Context(
            is_line_start=token.kind == "newline" or (self.is_line_start and is_lead),
            is_chinese=not is_word and (self.is_chinese or token.is_chinese),
            is_inside_word=is_word,
            before=token.text,
        )


class _Piece(NamedTuple):
    """Some characters of the text; `row` is the figure that they are, None if they are none."""

    text: str
    row: Row | None = None
    is_ordinal: bool = False
    is_chinese: bool = False
    is_list_marker: bool = False
    is_cited: bool = False
    is_swallowed: bool = False
    is_last: bool = False


_NO_FIGURE = _Piece("")


class _FigureReader:
    """Cuts a text into figures and what stands between them."""

    def __init__(self, context: _Context) -> None:
        self.context = context
        self._raw = ""
        self._folded = ""
        self._origins: list[int] = []
        self._swallowed_behind: FigurePart | None = None
        self._last_marker = 0
        self._unseen = 0

    def add(self, text: str) -> None:
        """Append text."""
        folded = [self._read(character) for character in text]
        self._folded += "".join(folded)
        self._origins += [at for at, read in enumerate(folded, len(self._raw)) for _ in read]
        self._raw += text

    def _read(self, character: str) -> str:
        read = fold_character(character)
        self._unseen = 0 if read else self._unseen + 1
        if self._unseen < MAX_UNSEEN:
            return read
        self._unseen = 0
        return UNSEEN

    def swallow_behind(self, row: Row) -> None:
        """Read what goes on behind a figure as a part of it; nothing does but behind a very long one."""
        self._swallowed_behind = row.parts[-1]

    def pieces(self, *, is_over: bool) -> Iterator[_Piece]:
        """Yield the pieces that are settled, each once; the caller must take them all."""
        tokens = tokens_in(self._folded, at_end=is_over)
        view = TokenView(tokens, is_over)
        at = taken = 0
        try:
            while at < len(tokens):
                piece, at_next = self._piece(view, at)
                for token in tokens[at:at_next]:
                    self.context = self.context.behind(token)
                at, begin, taken = at_next, taken, self._origin(tokens[at_next - 1].end)
                yield piece._replace(text=self._raw[begin:taken], is_last=at == len(tokens))
        except Undecided:
            """More text decides."""
        if is_over and taken < len(self._raw):
            yield _Piece(self._raw[taken:])
            taken = len(self._raw)
        self._drop(tokens[at - 1].end if at else 0, taken)

    def _origin(self, offset: int) -> int:
        """Return the index in the text of a character of the folded text; invisible ones belong to the one before."""
        return self._origins[offset] if offset < len(self._origins) else len(self._raw)

    def _drop(self, folded_count: int, raw_count: int) -> None:
        self._folded = self._folded[folded_count:]
        self._origins = [origin - raw_count for origin in self._origins[folded_count:]]
        self._raw = self._raw[raw_count:]

    def _piece(self, view: TokenView, at: int) -> tuple[_Piece, int]:
        if self._swallowed_behind is not None:
            found = continuation(view, at, self._swallowed_behind)
            self._swallowed_behind = found[0] if found else None
            if found:
                return _Piece("", is_swallowed=True), found[1]
        row = row_at(view, at, is_inside_word=self.context.is_inside_word)
        if row is None:
            return _NO_FIGURE, at + 1
        is_ordinal = self.context.before == _ORDINAL
        if is_ordinal and _is_followed_by_unit(row):
            row = Row(row.parts[:1], at + 1)
        is_marker = self.context.is_line_start and self._is_list_marker(view, row)
        is_cited = self.context.before == "[" and view[row.end].text == "]" and len(row.parts) == 1
        is_chinese = self.context.is_chinese or any(token.is_chinese for token in view.tokens[at : row.end])
        return _Piece("", row, is_ordinal, is_chinese, is_marker, is_cited), row.end

    def _is_list_marker(self, view: TokenView, row: Row) -> bool:
        """Return whether a number at the beginning of a line numbers a list: a small one, or the next one."""
        sign = view[row.end].text
        is_marked = sign == "、" or (sign in _LIST_SIGNS and view[row.end + 1].kind == "blank")
        if not is_marked or [part.kind for part in row.parts] != ["number"]:
            return False
        number = whole_value(row.parts[0])
        is_next = number <= MAX_COUNT or self._last_marker + 1 == number <= MAX_LIST_MARKER
        self._last_marker = number if is_next else self._last_marker
        return is_next


def _is_followed_by_unit(row: Row) -> bool:
    return len(row.parts) > 1 and row.parts[1].kind == "unit"


def _is_small(piece: _Piece) -> bool:
    """Return whether a figure is a small count or ordinal; a second part may only make it an ordinal."""
    if piece.row is None:
        return False
    kinds = [part.kind for part in piece.row.parts]
    if kinds not in (["number"], ["number", "suffix"]):
        return False
    is_ordinal = piece.is_ordinal or len(kinds) > 1
    return whole_value(piece.row.parts[0]) <= (MAX_ORDINAL if is_ordinal else MAX_COUNT)
