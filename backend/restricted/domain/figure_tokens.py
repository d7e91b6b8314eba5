"""The text of an answer cut into the tokens from which figures are read.

A token is final once `LOOK_AHEAD` characters stand behind it, so that the tokens of a text do not depend on the
pieces in which it arrives.
"""

import re
import unicodedata
from fractions import Fraction
from functools import cache
from typing import Literal, NamedTuple, cast

from backend.search.domain.number_words import (
    CHINESE_DIGITS,
    CHINESE_FORMAL,
    CHINESE_SCALES,
    CHINESE_TENS,
    CHINESE_UNITS_BEHIND_DIGITS,
    CHINESE_UNITS_BEHIND_MORE,
    UNITS,
)
from shared.plain_text.normal_form import is_cjk, normal_form

TokenKind = Literal["digits", "word", "numerals", "scales", "joint", "unit", "cjk", "blank", "newline", "sign"]

LOOK_AHEAD = 8
"""At least one character more than any token's rule looks at behind the token, such as " cent" behind "per"."""

MAX_UNSEEN = 4
UNSEEN = "\0"
"""So many invisible characters in a row are read as this sign, so that text which shows nothing ends, too."""

_NEWLINES = "\n\r\v\f\x85\u2028\u2029"
_CJK = "\u3005-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTER = rf"[^\W\d_{_CJK}]"
_BEGINNERS = "".join({*CHINESE_DIGITS, "十", "廿", "卅"} - set(CHINESE_FORMAL))
_NUMERALS = "".join({*CHINESE_DIGITS, *CHINESE_TENS, *CHINESE_SCALES} - set(CHINESE_FORMAL))
_SCALES = "".join({*CHINESE_TENS, *CHINESE_SCALES} - set(CHINESE_FORMAL) - set(_BEGINNERS))
_CHINESE_UNITS = sorted(
    (unit for unit in (*UNITS, *CHINESE_UNITS_BEHIND_DIGITS, *CHINESE_UNITS_BEHIND_MORE) if is_cjk(unit)),
    key=len,
    reverse=True,
)
_TOKEN = re.compile(
    rf"(?P<digits>[0-9]{{1,20}})"
    rf"|(?P<word>per cents?(?!{_LETTER})|[ap]\.m(?!{_LETTER})|us\$|{_LETTER}{{1,32}}(?:'{_LETTER}{{1,8}})?)"
    rf"|(?P<numerals>[{_BEGINNERS}][{_NUMERALS}]{{0,15}}"
    rf"|[{CHINESE_FORMAL}][{CHINESE_FORMAL}{_NUMERALS}]{{1,15}}|[{CHINESE_FORMAL}](?=[元圆圓]))"
    rf"|(?P<scales>[{_SCALES}半]{{1,4}})"
    rf"|(?P<joint>分之)"
    rf"|(?P<unit>{'|'.join(_CHINESE_UNITS)})"
    rf"|(?P<cjk>[上下中]午|[早晚]上|凌晨|[{_CJK}])"
    rf"|(?P<blank> {{1,3}})|(?P<newline>\n)|(?P<sign>.)"
)


class Token(NamedTuple):
    """A token; `start` and `end` are offsets in the folded text."""

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def is_chinese(self) -> bool:
        """Whether it is written in Chinese characters."""
        return self.kind in ("numerals", "scales", "joint", "unit", "cjk")


def tokens_in(folded: str, *, at_end: bool) -> list[Token]:
    """Return the tokens of a folded text, without the last ones where more text may change them."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(folded):
        if not at_end and match.end() + LOOK_AHEAD > len(folded):
            break
        tokens.append(Token(cast("TokenKind", match.lastgroup), match[0], match.start(), match.end()))
    return tokens


@cache
def fold_character(character: str) -> str:
    """Return how a character is read: in lower case and narrow, any script's digit as 0 to 9; "" if it is invisible.

    The comma and the enumeration comma of Chinese stay, because they separate numbers and belong to none.
    """
    if character.isspace():
        return "\n" if character in _NEWLINES else " "
    if character in "，、":
        return character
    value = None if is_cjk(character) else unicodedata.numeric(character, None)
    if value is not None:
        return str(Fraction(value).limit_denominator(1000)).replace("/", "\u2044")
    return "'" if character == "\u2019" else normal_form(character)
