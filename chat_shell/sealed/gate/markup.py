"""Check `markup`: plain sentences; no address, path, code, table, heading or long quotation."""

import re

from shared.plain_text.normal_form import words

MAX_QUOTED_WORDS = 3
"""A quotation of more words (Chinese: twice as many characters) is a passage, not a term set off."""

_MARKUP = re.compile(
    r"://|\bwww\.|@|\b(?:mailto|https?|ftp)\b"
    r"|\b[a-z0-9-]{2,63}\.(?:com|org|net|io|cn|dev|ai|app|xyz|co|eu|edu|gov|info|biz|cloud|tech|site|online|local|internal|example|test|lan|md|txt|pdf|docx?|xlsx?|csv|json|ya?ml|py|sh)\b"
    r"|(?:^|[\s(\"'“])[~.]{0,2}/[\w.-]+|\w/\w+/|\\|\b[a-z]:/"  # paths; "and/or" is none
    r"|[`|{}#<>^=~＝＜＞＃｜〜～]|\*\*|__|\b\w+_\w+|\[[^\]]*\]|\w\(\)|&[a-z]{2,8};|&#|--+|->"
    r"|(?:^|\s)[*+•·-]\s",
    re.IGNORECASE,
)
_QUOTATION = re.compile(
    r"“([^”]{1,2000})”?|‘([^’]{1,2000})’|「([^」]{1,2000})」?|『([^』]{1,2000})』?|《([^》]{1,2000})》?|«([^»]{1,2000})»?"
    r"|[\"＂]([^\"＂]{1,2000})[\"＂]?|(?:^|(?<=[\s(:,]))'([^']{1,2000})'(?=$|[\s).,;:!?])"
)


def has_markup(text: str) -> bool:
    """Tell whether a text is more than plain sentences."""
    return _MARKUP.search(text) is not None or any(_is_long(match) for match in _QUOTATION.finditer(text))


def _is_long(match: re.Match[str]) -> bool:
    found = words(match[match.lastindex or 0])
    cjk = sum(1 for word in found if not word.isascii())
    return len(found) - cjk / 2 > MAX_QUOTED_WORDS
