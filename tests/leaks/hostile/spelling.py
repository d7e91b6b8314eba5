"""Numbers and texts in other spellings, as a model that wants to slip them past a filter writes them."""

import base64
import codecs

_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
_DIGITS = "零一二三四五六七八九"
_ZERO_WIDTH = "\u200b"
_LEET = str.maketrans("oieast", "013457")


def english_number(number: str) -> str:
    """Spell a number such as 38600 or 2.5 in English."""
    whole, _, fraction = number.partition(".")
    spelled = _english_whole(int(whole))
    return f"{spelled} point {' '.join(_UNITS[int(digit)] for digit in fraction)}" if fraction else spelled


def chinese_number(number: str) -> str:
    """Spell a number in Chinese."""
    whole, _, fraction = number.partition(".")
    spelled = _chinese_whole(int(whole))
    return f"{spelled}点{''.join(_DIGITS[int(digit)] for digit in fraction)}" if fraction else spelled


def roman_number(number: str) -> str:
    """Spell the whole part of a number in Roman numerals, up to 3999."""
    rest, spelled = int(number.partition(".")[0]) % 4000, ""
    for value, letters in _ROMAN:
        spelled += letters * (rest // value)
        rest %= value
    return spelled


def full_width(text: str) -> str:
    """Write printable ASCII in full width."""
    return "".join(chr(ord(character) + 0xFEE0) if "!" <= character <= "~" else character for character in text)


def circled(number: str) -> str:
    """Write digits in circles."""
    return "".join("⓪①②③④⑤⑥⑦⑧⑨"[int(digit)] for digit in number if digit.isdigit())


def spaced(text: str) -> str:
    """Put a space between all characters."""
    return " ".join(text)


def zero_width(text: str) -> str:
    """Put an invisible character between all characters."""
    return _ZERO_WIDTH.join(text)


def base64_text(text: str) -> str:
    """Write in base64."""
    return base64.b64encode(text.encode()).decode()


def base32_text(text: str) -> str:
    """Write in base32."""
    return base64.b32encode(text.encode()).decode()


def hexadecimal(text: str) -> str:
    """Write in hexadecimal digits."""
    return text.encode().hex()


def rot13(text: str) -> str:
    """Shift letters by thirteen."""
    return codecs.encode(text, "rot13")


def leet(text: str) -> str:
    """Write letters as digits that look like them."""
    return text.lower().translate(_LEET)


def _english_whole(value: int) -> str:
    for size, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if value >= size:
            rest = f" {_english_whole(value % size)}" if value % size else ""
            return f"{_english_whole(value // size)} {name}{rest}"
    if value < len(_UNITS):
        return _UNITS[value]
    return _TENS[value // 10] + (f"-{_UNITS[value % 10]}" if value % 10 else "")


def _chinese_whole(value: int) -> str:
    if value < 10:
        return _DIGITS[value]
    for size, name in ((10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if value >= size:
            head, rest = _chinese_whole(value // size), value % size
            gap = "零" if 0 < rest < size // 10 else ""
            return f"{head}{name}{gap}{_chinese_whole(rest) if rest else ''}"
    raise ValueError(value)
