"""A text as its reader sees it: links become their words, invisible markup is removed, a paragraph is one line.

The repetitions in all patterns are bounded, so that no document can make them take excessively long.
"""

import html
import re
import unicodedata

from shared.plain_text.normal_form import is_invisible

_COMMENT = re.compile(r"<!--.{0,2000}?-->", re.DOTALL)
_RUBY = re.compile(r"<r[tp]\b[^<>\n]{0,200}>[^<\n]{0,80}</r[tp]>", re.IGNORECASE)
_BREAK = re.compile(r"<br\s{0,3}/?>|\\\n| {2,8}\n", re.IGNORECASE)
_BOLD_TAG = re.compile(r"</?(?:b|strong|em|i|u|mark|dfn|dt|th|h[1-6])(?:\s[^<>\n]{0,200})?>", re.IGNORECASE)
_CODE_TAG = re.compile(r"</?(?:code|tt|kbd)(?:\s[^<>\n]{0,200})?>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][a-z0-9]{0,12}(?:\s[^<>\n]{0,300})?/?>", re.IGNORECASE)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\](?:\([^()\s]{0,500}(?: [\"'][^\n\"']{0,100}[\"'])?\)|\[[^\[\]\n]{0,80}\])")
_NOTE = re.compile(r"\[\^[^\[\]\s]{1,40}\]")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_INDENT = re.compile(r"^(?:[^\S\n]|>){1,40}", re.MULTILINE)
_BULLET = re.compile(r"^(?:(?:[-*+•·▪‣◦–—]|\[[ xX]\])[^\S\n]{1,40}){1,3}", re.MULTILINE)
_NUMBER = re.compile(
    r"^(?:[（(](?:[0-9]{1,2}|[a-z]|[一二三四五六七八九十]{1,3})[）)]|[①-⑳]|[一二三四五六七八九十]{1,3}、"
    r"|(?:[0-9]{1,2}\.){1,3}[0-9]{1,2}(?=[^\S\n])|[a-z][.)](?=[^\S\n]))[^\S\n]{0,40}",
    re.MULTILINE,
)
_BLANKS = re.compile(r"[^\S\n]{2,}|[^\S\n ]")
_HYPHENATED = re.compile(r"(?<=[A-Za-z])-[ \n](?=[a-z])")
_APOSTROPHE = re.compile(r"(?<=\w)’(?=\w)")
_HAN = "\u3005-\u3007\u3400-\u9fff"
_BEGINS = re.compile(r"[-#|]|\d{1,2}[.)] ")
_STANDS_ALONE = re.compile(r"#|\||[-=]{3,}$")
_ENDS_IN_HAN = re.compile(rf"[{_HAN}、。,;:]$")
_BEGINS_IN_HAN = re.compile(rf"[“「『《\"{_HAN}]")
_CELLS = " | "


class _Shown(dict[int, int | None]):
    """A table for `str.translate` that removes invisible characters."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        shown = self[code] = code if character == "\n" or not is_invisible(character) else None
        return shown


_SHOWN = _Shown({0x2010: ord("-"), 0x2011: ord("-")})


def show_lines(text: str) -> str:
    """Return the lines of a text in NFKC as they are shown: no indent, one kind of bullet and number, bold for tags."""
    text = _without_tags(html.unescape(text) if "&" in text else text)
    if "[" in text:
        text = _NOTE.sub("", _LINK.sub(r"\1", text))
    if "\\" in text:
        text = _ESCAPED.sub(r"\1", text)
    lines = _NUMBER.sub("1. ", _BULLET.sub("- ", _INDENT.sub("", text)))
    shown = unicodedata.normalize("NFKC", lines.translate(_SHOWN))
    return _BLANKS.sub(" ", _APOSTROPHE.sub("'", shown))


def as_read(text: str) -> str:
    """Return a text in NFKC as it is read: the lines that are shown, with each paragraph on one line."""
    return join_lines(show_lines(text))


def join_lines(shown: str) -> str:
    """Join the lines of each paragraph; headings, list items and table rows stay separate."""
    lines: list[str] = []
    for line in _HYPHENATED.sub("", shown).split("\n"):
        above = lines[-1] if lines else ""
        if not above or not line or _begins_anew(above, line):
            lines.append(line)
        else:
            joint = "" if _ENDS_IN_HAN.search(above) and _BEGINS_IN_HAN.match(line) else " "
            lines[-1] = f"{above.rstrip()}{joint}{line}"
    return "\n".join(lines)


def _without_tags(text: str) -> str:
    text = _BREAK.sub("\n", text)
    if "<" not in text:
        return text
    text = _RUBY.sub("", _COMMENT.sub("", text))
    return _TAG.sub("", _CODE_TAG.sub("`", _BOLD_TAG.sub("**", text)))


def _begins_anew(above: str, line: str) -> bool:
    is_row = _CELLS in above or _CELLS in line
    return is_row or bool(_STANDS_ALONE.match(above) or _STANDS_ALONE.match(line) or _BEGINS.match(line))
