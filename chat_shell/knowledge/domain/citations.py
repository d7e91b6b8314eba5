"""Find citations in streamed text: `[1, 2]`, `[[1]]` and `【1】` become `[1][2]` or `[1]`, each with a citation event.

Markers in Markdown's code, links and link definitions are no citations (CommonMark 0.31, sections 4.4, 4.5, 4.7, 6.1,
6.3). These rules are followed as far as possible without holding back more text than one unfinished marker. How the
text is split into deltas makes no difference to the result.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from chat_shell.knowledge.domain.text_before import TextBefore
from shared.models.events import CitationAdded
from shared.models.values import Place

MAX_NUMBERS = 64
MAX_DIGITS = 9

MAX_SOURCE_CHARACTERS = 100
"""How long the words may be that stand behind a number and a dagger, as models write them that were taught so."""

_FIRST_DIGIT, _DIGIT = "[1-9１-９]", "[0-9０-９]"
_NUMBER = rf"{_FIRST_DIGIT}{_DIGIT}{{0,{MAX_DIGITS - 1}}}+"
_SEPARATOR = r"[,，、;；] ?"
_NUMBERS = rf"{_NUMBER}(?:{_SEPARATOR}{_NUMBER}){{0,{MAX_NUMBERS - 1}}}+"
_NUMBERS_BEFORE = rf"(?:{_NUMBER}{_SEPARATOR}){{0,{MAX_NUMBERS - 1}}}+"

_SOURCE = rf"†[^】\n]{{0,{MAX_SOURCE_CHARACTERS}}}+"

_MARKER = re.compile(rf"\[(?:\[{_NUMBERS}\]\]|{_NUMBERS}\])|【 ?(?:{_NUMBERS} ?|{_NUMBER}{_SOURCE})】|［{_NUMBERS}］")
_BEGINNING = re.compile(
    rf"(?:\[\[?{_NUMBERS_BEFORE}(?:{_NUMBER}\]?)?|［{_NUMBERS_BEFORE}(?:{_NUMBER})?"
    rf"|【 ?(?:{_NUMBERS_BEFORE}(?:{_NUMBER} ?)?|{_NUMBER}{_SOURCE}))\Z"
)
_WRITTEN_NUMBER = re.compile(rf"{_DIGIT}+")
_BEHIND_DAGGER = re.compile("†.*", re.DOTALL)

OPENING = rf"\[(?=\[?(?:{_FIRST_DIGIT}|\Z))|【(?= ?(?:{_FIRST_DIGIT}|\Z))|［(?={_FIRST_DIGIT}|\Z)"
"""Pattern of a bracket that may begin a marker, judged by the characters after it."""


class CitationMarker(NamedTuple):
    """A marker: its numbers, and the index of the character after it."""

    numbers: tuple[int, ...]
    end: int


def marker_at(text: str, at: int) -> CitationMarker | None:
    """Return the marker whose bracket is at index `at`; None where there is none, or only its beginning."""
    found = _MARKER.match(text, at)
    if found is None:
        return None
    numbers = _WRITTEN_NUMBER.findall(_BEHIND_DAGGER.sub("", found[0]))
    return CitationMarker(tuple(map(int, numbers)), found.end())


def begins_marker(text: str, at: int) -> bool:
    """Whether the whole rest of the text is the beginning of a marker, so that more text must decide."""
    return _BEGINNING.match(text, at) is not None


def is_link(opener: str, following: str, *, begins_line: bool) -> bool:
    """Whether the character after a marker makes it a link or a link definition."""
    return opener == "[" and (following == "(" or (following == ":" and begins_line))


FENCE_LENGTH = 3

_TEXT_STOPS = re.compile(rf"[`~]|{OPENING}")
_INLINE_STOPS = re.compile(r"[`~\n]")
_OPENING_STOPS = re.compile(r"[`\n]")
_NEWLINE = re.compile(r"\n")
_NOT_BLANK = re.compile(r"[^ \t\r]")
_NOT_INDENT = re.compile(r"[^ \t\r>\n]")
_RUNS = {"`": re.compile("`+"), "~": re.compile("~+")}


class CitedDocument(NamedTuple):
    """The document that a citation's number refers to."""

    file_id: str
    filename: str
    place: Place | None = None
    other_names: tuple[str, ...] = ()


class CitedText(NamedTuple):
    """Text for the client, and the citations in it."""

    text: str
    citations: tuple[CitationAdded, ...]


class _Mode(Enum):
    TEXT = "text"
    RUN = "run"  # within backticks or tildes
    INLINE = "inline"  # within an inline code span
    OPENING = "opening"  # on the line that opens a fence
    FENCE = "fence"
    CLOSING = "closing"  # behind a run that closes a fence if only blanks follow on its line


class CitationParser:
    """Finds the citations in the text of one model call; feed it deltas, and flush it once at the end.

    Without documents nothing can be cited, and the text is returned unchanged.
    """

    def __init__(self, documents: Mapping[int, CitedDocument]):
        self._documents = documents
        self._mode = _Mode.TEXT
        self._emitted_characters = 0
        self._pieces: list[str] = []
        self._citations: list[CitationAdded] = []
        self._before = TextBefore()
        # the beginning of a possible marker, which is held back until more text arrives
        self._held = ""
        self._ended = False
        # the current run of backticks or tildes, the mode before it, and the run that opened the code
        self._run_character = ""
        self._run_length = 0
        self._run_begins_line = False
        self._run_from = _Mode.TEXT
        self._code_character = ""
        self._code_length = 0

    def feed(self, delta: str) -> CitedText:
        """Take more text; return the text whose citations are decided."""
        if not self._documents or not delta:
            return CitedText(delta, ())
        if self._mode is _Mode.TEXT and not self._held and _TEXT_STOPS.search(delta) is None:
            self._before.add(delta)
            self._emitted_characters += len(delta)
            return CitedText(delta, ())
        self._read(delta)
        return self._take()

    def flush(self) -> CitedText:
        """Return the text that was held back; call this once the text has ended."""
        self._ended = True
        self._read("")
        return self._take()

    def _take(self) -> CitedText:
        taken = CitedText("".join(self._pieces), tuple(self._citations))
        self._pieces.clear()
        self._citations.clear()
        return taken

    def _read(self, delta: str) -> None:
        text, self._held = self._held + delta, ""
        at = 0
        while at < len(text):
            at = self._read_on(text, at)

    def _read_on(self, text: str, at: int) -> int:
        """Read from `at` in the current mode; return the next index, which is `at` where only the mode changed."""
        match self._mode:
            case _Mode.TEXT:
                return self._read_text(text, at)
            case _Mode.RUN:
                return self._read_run(text, at)
            case _Mode.INLINE:
                return self._read_inline(text, at)
            case _Mode.OPENING:
                return self._read_opening(text, at)
            case _Mode.FENCE:
                return self._read_fence(text, at)
            case _Mode.CLOSING:
                return self._read_closing(text, at)

    def _pass(self, text: str) -> None:
        if text:
            self._before.add(text)
            self._emit(text)

    def _emit(self, text: str) -> None:
        self._pieces.append(text)
        self._emitted_characters += len(text)

    def _pass_to(self, stops: re.Pattern[str], text: str, at: int) -> int:
        """Pass text up to the next stop; return the index of the stop."""
        found = stops.search(text, at)
        end = found.start() if found else len(text)
        self._pass(text[at:end])
        return end

    # Text and markers

    def _read_text(self, text: str, at: int) -> int:
        at = self._pass_to(_TEXT_STOPS, text, at)
        if at == len(text):
            return at
        character = text[at]
        if self._before.escaped or (character == "[" and self._before.behind_bracket):
            self._pass(character)
        elif character in "`~":
            self._begin_run(character)
        else:
            return self._read_bracket(text, at)
        return at + 1

    def _read_bracket(self, text: str, at: int) -> int:
        """Cite a marker, hold its beginning back, or pass this bracket alone, as a marker may begin right after it."""
        marker = marker_at(text, at)
        known = marker is not None and all(number in self._documents for number in marker.numbers)
        undecided = begins_marker(text, at) if marker is None else known and marker.end == len(text)
        if undecided and not self._ended:
            self._held = text[at:]
            return len(text)
        if marker is None or not known:
            self._pass(text[at])
            return at + 1
        following = text[marker.end : marker.end + 1]
        links = is_link(text[at], following, begins_line=self._before.line_is_blank)
        if links or self._before.rules_out(marker.numbers, following):
            self._pass(text[at : marker.end])
        else:
            self._cite(marker)
            self._before.add_citation(text[at : marker.end])
        return marker.end

    def _cite(self, marker: CitationMarker) -> None:
        for number in marker.numbers:
            document = self._documents[number]
            self._citations.append(
                CitationAdded(
                    number=number,
                    file_id=document.file_id,
                    filename=document.filename,
                    index=self._emitted_characters,
                    place=document.place,
                    other_names=document.other_names,
                )
            )
            self._emit(f"[{number}]")

    # Code

    def _begin_run(self, character: str) -> None:
        self._run_from = self._mode
        self._run_begins_line = self._before.line_is_blank
        self._run_character = character
        self._run_length = 1
        self._mode = _Mode.RUN
        self._pass(character)

    def _read_run(self, text: str, at: int) -> int:
        run = _RUNS[self._run_character].match(text, at)
        if run is None:
            self._mode = self._after_run()
            return at
        self._run_length += len(run[0])
        self._pass(run[0])
        return run.end()

    def _after_run(self) -> _Mode:
        length, origin = self._run_length, self._run_from
        if origin is _Mode.FENCE:
            return _Mode.CLOSING if length >= self._code_length else _Mode.FENCE
        if origin is not _Mode.TEXT and self._run_character == "`" and length == self._code_length:
            return _Mode.TEXT
        # Models also open fences after list markers and words, but rarely use three backticks for a code span.
        may_open = self._run_begins_line or (origin is _Mode.TEXT and self._run_character == "`")
        if may_open and length >= FENCE_LENGTH:
            return self._open_code(_Mode.OPENING)
        if origin is _Mode.TEXT and self._run_character == "`":
            return self._open_code(_Mode.INLINE)
        return origin

    def _open_code(self, mode: _Mode) -> _Mode:
        self._code_character = self._run_character
        self._code_length = self._run_length
        return mode

    def _read_inline(self, text: str, at: int) -> int:
        at = self._pass_to(_INLINE_STOPS, text, at)
        if at == len(text):
            return at
        if text[at] != "\n":
            self._begin_run(text[at])
            return at + 1
        if self._before.line_is_blank:  # a code span ends with its paragraph, closed or not
            self._mode = _Mode.TEXT
        self._pass("\n")
        return at + 1

    def _read_opening(self, text: str, at: int) -> int:
        stops = _OPENING_STOPS if self._code_character == "`" else _NEWLINE
        at = self._pass_to(stops, text, at)
        if at == len(text):
            return at
        if text[at] == "`":  # perhaps the end of a code span within one line
            self._begin_run("`")
        else:
            self._mode = _Mode.FENCE
            self._pass("\n")
        return at + 1

    def _read_fence(self, text: str, at: int) -> int:
        if self._before.line_is_blank:
            at = self._pass_to(_NOT_INDENT, text, at)
            if at < len(text) and text[at] == self._code_character:
                self._begin_run(text[at])
                return at + 1
        return self._pass_line(text, at)

    def _read_closing(self, text: str, at: int) -> int:
        at = self._pass_to(_NOT_BLANK, text, at)
        if at < len(text):
            self._mode = _Mode.TEXT if text[at] == "\n" else _Mode.FENCE
        return at

    def _pass_line(self, text: str, at: int) -> int:
        newline = text.find("\n", at)
        end = len(text) if newline < 0 else newline + 1
        self._pass(text[at:end])
        return end
