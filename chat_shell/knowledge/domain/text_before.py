"""The text before a bracket in a model's answer: it tells a citation from a part of something else.

Links, addresses, code in HTML, intervals, lists of numbers and formulas hold brackets with numbers, too. The rules
look back over a bounded stretch of text, so that their cost grows with the text and no faster.
"""

import re

WINDOW_CHARACTERS = 240
"""How far back the rules look; longer than nearly all addresses."""

_TRIMMED_CHARACTERS = 4 * WINDOW_CHARACTERS
_HEAD_CHARACTERS = 16
_LINE_INDENT = " \t\r>"
_CODE_INDENT = re.compile(r" {4}| {0,3}\t")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|\Z)")

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://")
_GOES_ON_IN_ADDRESS = re.compile(r"[\w/?&=#%-]")
_AUTOLINK = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[^<>]*\Z")
_HTML_CODE = ("code", "pre")
_NUMBERED_INTERVAL = re.compile(
    r"(?:\binterval|\brange|\bintervall|\bintervalle|∈|\\in|区间|範囲|范围)\s?\Z", re.IGNORECASE
)
_INTERVAL_CHARACTERS = 14
_VALUE = re.compile(r"(?:=|[\"']\s?:)\s?\Z")
_ROWS = re.compile(r"\[\[[0-9., -]*\](?:,\s?\[[0-9., -]*\])*+,\s?")


class TextBefore:
    """The text before the next character, as far as the meaning of that character depends on it.

    `line_is_blank` is true where only blanks and marks of quotation stand on its line, `escaped` where a backslash
    stands before it, and `behind_bracket` where a closing bracket does. How the text is split makes no difference.
    """

    def __init__(self) -> None:
        self.line_is_blank = True
        self.escaped = False
        self.behind_bracket = False
        self._window = ""
        self._line = _LineBeginning()

    def add(self, text: str) -> None:
        """Take the text that follows, which may not be empty."""
        line = text[text.rfind("\n") + 1 :]
        blank_so_far = self.line_is_blank or len(line) < len(text)
        self.line_is_blank = blank_so_far and not line.strip(_LINE_INDENT)
        self.behind_bracket = text[-1] == "]" and not _ends_escaping(text[:-1], self.escaped)
        self.escaped = _ends_escaping(text, self.escaped)
        self._window += text
        if len(self._window) > _TRIMMED_CHARACTERS:
            self._window = self._window[-WINDOW_CHARACTERS:]
        self._line.add(text)

    def add_citation(self, marker: str) -> None:
        """Take a marker that is a citation: a bracket behind it may begin another one."""
        self.add(marker)
        self.behind_bracket = False

    def rules_out(self, numbers: tuple[int, ...], following: str) -> bool:
        """Whether a marker of these numbers is no citation here; `following` is the character behind it, or ""."""
        before = self._window[-WINDOW_CHARACTERS:]
        return (
            self._line.is_code
            or _is_value(before, numbers, following)
            or _is_in_address(before, following)
            or _is_in_destination(before)
            or _is_in_html_code(before)
            or _is_in_formula(before)
        )


class _LineBeginning:
    """The beginning of the current line, and whether lines are indented code (CommonMark 0.31, section 4.4).

    An indented line behind an item of a list continues the item.
    """

    def __init__(self) -> None:
        self._head = ""
        self._is_behind_blank = True
        self._is_behind_code = False
        self._is_in_list = False

    def add(self, text: str) -> None:
        """Take the text that follows."""
        at = 0
        while (newline := text.find("\n", at)) >= 0:
            self._extend(text, at, newline)
            self._end_line()
            at = newline + 1
        self._extend(text, at, len(text))

    @property
    def is_code(self) -> bool:
        """Whether the current line is indented code."""
        may_begin = self._is_behind_blank or self._is_behind_code
        return may_begin and not self._is_in_list and _CODE_INDENT.match(self._head) is not None

    def _extend(self, text: str, start: int, end: int) -> None:
        room = _HEAD_CHARACTERS - len(self._head)
        if room:
            self._head += text[start : min(end, start + room)]

    def _end_line(self) -> None:
        head, self._head = self._head, ""
        if not head.strip() and len(head) < _HEAD_CHARACTERS:
            self._is_behind_blank = True
            return
        indented = _CODE_INDENT.match(head) is not None
        self._is_behind_code = indented and not self._is_in_list and (self._is_behind_blank or self._is_behind_code)
        self._is_behind_blank = False
        if not indented:
            self._is_in_list = _LIST_ITEM.match(head) is not None or (self._is_in_list and head[0] == " ")


def _is_value(before: str, numbers: tuple[int, ...], following: str) -> bool:
    """Whether the marker is an interval, a list that something is set to, or a row of a matrix."""
    words = before[-_INTERVAL_CHARACTERS:]
    if len(numbers) == 2 and numbers[0] < numbers[1] and _NUMBERED_INTERVAL.search(words):
        return True
    if _VALUE.search(words):
        return True
    if following == "," and before.endswith("["):
        return True
    rows = before.rfind("[[")
    return rows >= 0 and _ROWS.fullmatch(before, rows) is not None


def _is_in_address(before: str, following: str) -> bool:
    """Whether the marker stands inside an address: in angle brackets, or bare where the address goes on behind it."""
    word = before[max(before.rfind(" "), before.rfind("\n")) + 1 :]
    if ":" not in word:
        return False
    goes_on = _GOES_ON_IN_ADDRESS.match(following) is not None
    return _AUTOLINK.search(word) is not None or (goes_on and _ADDRESS.search(word) is not None)


def _is_in_destination(before: str) -> bool:
    """Whether the marker stands in the address or the title of a link, whose round bracket is still open."""
    start = before.rfind("](")
    if start < 0:
        return False
    inside = before[start + 2 :]
    return "\n" not in inside and inside.count(")") <= inside.count("(")


def _is_in_html_code(before: str) -> bool:
    return any(before.rfind(f"<{tag}>") > before.rfind(f"</{tag}>") for tag in _HTML_CODE)


def _is_in_formula(before: str) -> bool:
    r"""Whether the marker stands in a formula of LaTeX, which begins with `\[` and a blank."""
    start = before.rfind("\\[")
    if start < 0 or before[start - 1 : start] == "\\":
        return False
    inside = before[start + 2 :]
    return inside[:1] in (" ", "\n") and "\\]" not in inside and "\n\n" not in inside


def _ends_escaping(text: str, escaped: bool) -> bool:
    """Whether the character behind `text` is escaped; `escaped` is true where the first character of `text` is."""
    backslashes = len(text) - len(text.rstrip("\\"))
    if backslashes == len(text):
        return (backslashes % 2 == 1) != escaped
    return backslashes % 2 == 1
