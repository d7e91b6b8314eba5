"""Figures in English and Chinese text, read as values: "12%", "twelve per cent" and "百分之十二" are one figure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from shared.plain_text.normal_form import normal_form

TELLING_DIGITS = 3
"""A number without a unit identifies its source if it has so many significant digits; shorter ones are common."""

MAX_PIECES = 20
"""The largest number of digits, numerals or number words in one figure; more of them are several figures."""

_DIGITS = rf"\d{{1,{MAX_PIECES}}}"
_FIRST_YEAR, _LAST_YEAR = 1900, 2099
_FRACTIONS = {
    "½": ".5", "¼": ".25", "¾": ".75", "⅕": ".2", "⅖": ".4", "⅗": ".6", "⅘": ".8", "⅛": ".125", "⅜": ".375",
    "⅝": ".625", "⅞": ".875",
}  # fmt: skip
_MIXED_NUMBER = re.compile(f"(\\d?) ?([{''.join(_FRACTIONS)}])")
_DECIMAL_COMMA = re.compile(r"(\d+),(\d{1,2})")

ENGLISH_ONES = {
    word: value
    for value, word in enumerate(
        (
            "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
            "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
        )
    )
}  # fmt: skip
ENGLISH_TENS = {
    word: value * 10
    for value, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), start=2
    )
}
ENGLISH_SCALES = {
    "hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9, "trillion": 10**12, "k": 1_000,
    "m": 10**6, "mn": 10**6, "bn": 10**9,
}  # fmt: skip
CHINESE_DIGITS = {
    **{numeral: value for value, numeral in enumerate("〇一二三四五六七八九")},
    **{numeral: value for value, numeral in enumerate("零壹贰叁肆伍陆柒捌玖")},
    **dict(zip("貳參陸兩两俩仨", (2, 3, 6, 2, 2, 2, 3), strict=True)),
}
CHINESE_TENS = {"十": 10, "拾": 10, "廿": 20, "卅": 30, "百": 100, "佰": 100, "千": 1_000, "仟": 1_000}
CHINESE_SCALES = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}

_BELOW = {100: 10, 1_000: 100}
"""The value of one unit of the last numeral after a hundred or a thousand: 三百五 is 350."""

_PERCENT = "%"
_CURRENCIES = {
    "$": "usd", "us$": "usd", "usd": "usd", "dollar": "usd", "dollars": "usd", "美元": "usd",
    "€": "eur", "eur": "eur", "euro": "eur", "euros": "eur", "欧元": "eur",
    "£": "gbp", "gbp": "gbp", "pounds": "gbp", "英镑": "gbp",
    "¥": "cny", "cny": "cny", "rmb": "cny", "yuan": "cny", "元": "cny", "人民币": "cny", "块": "cny", "块钱": "cny",
    "jpy": "jpy", "yen": "jpy", "日元": "jpy", "chf": "chf", "hkd": "hkd", "港元": "hkd",
}  # fmt: skip
_UNITS = {
    alias: unit
    for unit, aliases in {
        "second": "seconds secs sec s 秒 秒钟", "minute": "minutes mins min 分钟", "hour": "hours hrs hr h 小时 钟头",
        "day": "days d 天 日", "week": "weeks 周 星期 礼拜", "month": "months 个月 月", "year": "years yrs yr 年 岁",
        "ms": "milliseconds millisecond 毫秒", "byte": "bytes 字节", "kb": "kilobytes", "mb": "megabytes",
        "gb": "gigabytes", "tb": "terabytes", "gram": "grams g 克", "kg": "kilograms kilogram kilos kilo 公斤 千克",
        "tonne": "tonnes tons ton 吨", "mm": "millimetres millimeters 毫米", "cm": "centimetres centimeters 厘米",
        "metre": "metres meters meter m 米", "km": "kilometres kilometers 公里 千米", "mile": "miles 英里",
        "litre": "litres liters liter l 升", "kwh": "千瓦时", "watt": "watts w 瓦", "volt": "volts v 伏",
        "degree": "degrees °c °f 度 摄氏度", "person": "people persons employees staff users members 人 名 位",
        "time": "times x 倍", "point": "points bp bps 个百分点",
    }.items()
    for alias in (unit, *aliases.split())
}  # fmt: skip
_ALWAYS_TELLING = frozenset({_PERCENT, *_CURRENCIES.values()})
_SMALLEST = frozenset({"0", "1"})
_NUMBER_WORDS = "|".join((*ENGLISH_ONES, *ENGLISH_TENS, "hundred", "thousand", "million", "billion", "trillion"))
_CHINESE_NUMERALS = "".join((*CHINESE_DIGITS, *CHINESE_TENS, *CHINESE_SCALES))
_SUFFIXES = "|".join(
    sorted((re.escape(word) + (r"(?![a-z])" if word.isascii() and word.isalpha() else "")
            for word in (*_CURRENCIES, *_UNITS)), key=len, reverse=True)
)  # fmt: skip
_FIGURE = re.compile(
    rf"(?:(?P<share>百分之|千分之) ?)?"
    rf"(?:(?P<before>us\$|[$€£¥]|\b(?:usd|eur|gbp|cny|rmb|chf|hkd|jpy)(?![a-z])) ?)?"
    rf"(?:(?P<digits>\d{{1,3}}(?:[,' ]\d{{3}}){{1,12}}(?:\.{_DIGITS})?(?!\d)"
    rf"|{_DIGITS}(?:\.{_DIGITS}|,\d{{1,2}}(?![\d,]))?)"
    rf"|\b(?P<words>(?:{_NUMBER_WORDS})(?:[ -](?:and )?(?:{_NUMBER_WORDS})){{0,{MAX_PIECES}}})\b"
    rf"|(?P<chinese>[{_CHINESE_NUMERALS}]{{1,{MAX_PIECES}}}(?:点[{_CHINESE_NUMERALS}]{{1,{MAX_PIECES}}})?))"
    r"(?: ?(?P<scale>(?:hundred|thousand|million|billion|trillion|bn|mn|k)(?![a-z])|[万萬亿億]"
    r"|(?(before)m(?![a-z])|(?!))))?"  # behind a currency only: else it is the metre
    r"(?:(?<=[万萬])(?P<rest>\d{1,4})(?P<rest_scale>[千百]?))?"
    rf"(?: ?-?(?P<after>%|‰|per ?cent(?:age points?)?|pct|{_SUFFIXES}|成))?"
)


@dataclass(frozen=True)
class Figure:
    """A number with its unit; equal figures are equal values however they were written.

    `value` is in plain decimal notation; `unit` is "%", a currency, a unit in the singular, or "".
    """

    value: str
    unit: str = ""

    @property
    def significant_digits(self) -> int:
        """Count the significant digits: leading zeros, and trailing zeros of a whole number, do not count."""
        digits = self.value.replace(".", "").lstrip("0")
        return len(digits if "." in self.value else digits.rstrip("0"))

    @property
    def is_year(self) -> bool:
        """Whether it can be read as a year from 1900 to 2099: four digits, without a unit other than "year"."""
        return (
            self.unit in ("", "year")
            and len(self.value) == 4
            and self.value.isdigit()
            and _FIRST_YEAR <= int(self.value) <= _LAST_YEAR
        )

    @property
    def is_telling(self) -> bool:
        """Whether it identifies its source: it has a unit or enough digits, and is no year and not like "one day"."""
        if self.is_year or (self.value in _SMALLEST and self.unit not in _ALWAYS_TELLING):
            return False
        return bool(self.unit) or self.has_telling_digits

    @property
    def has_telling_digits(self) -> bool:
        """Whether the value identifies its source even where the unit is left out or replaced."""
        return self.significant_digits >= TELLING_DIGITS


@dataclass(frozen=True)
class FigureSet:
    """A set of figures to compare others with: by value and unit, or by the value alone if it has enough digits."""

    figures: frozenset[Figure]
    _values: frozenset[str] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "_values", frozenset(figure.value for figure in self.figures))

    def holds(self, figure: Figure) -> bool:
        """Tell whether a figure is one of these."""
        return figure in self.figures or (figure.has_telling_digits and figure.value in self._values)


def figures(text: str) -> list[Figure]:
    """Return the figures of a text in order: digits, English number words, Chinese numerals."""
    # The normal form would turn 12½ into 121/2, and a Chinese comma into one that may be part of a number.
    parted = _MIXED_NUMBER.sub(lambda match: f"{match[1] or 0}{_FRACTIONS[match[2]]}", text.replace("，", ", "))
    return [figure for match in _FIGURE.finditer(normal_form(parted)) for figure in _read(match)]


def telling_figures(text: str) -> frozenset[Figure]:
    """Return the figures of a text that identify their source."""
    return frozenset(figure for figure in figures(text) if figure.is_telling)


def english_value(number_words: Sequence[str]) -> int:
    """Return the value of words such as ["three", "hundred", "fifty"]; unknown words are ignored."""
    total = part = 0
    for word in number_words:
        if word in ENGLISH_ONES:
            part += ENGLISH_ONES[word]
        elif word in ENGLISH_TENS:
            part += ENGLISH_TENS[word]
        elif word == "hundred":
            part = max(part, 1) * 100
        elif word in ENGLISH_SCALES:
            total, part = total + max(part, 1) * ENGLISH_SCALES[word], 0
    return total + part


def chinese_value(numerals: str) -> int:
    """Return the value of numerals such as "三百五十" or, digit by digit, "一二三"."""
    if not any(numeral in CHINESE_TENS or numeral in CHINESE_SCALES for numeral in numerals):
        return int("".join(str(CHINESE_DIGITS[numeral]) for numeral in numerals) or "0")
    total = section = digit = 0
    ones = 1
    for numeral in numerals:
        if numeral in CHINESE_DIGITS:
            digit = CHINESE_DIGITS[numeral]
            ones = ones if digit else 1
        elif numeral in CHINESE_TENS:
            tens = CHINESE_TENS[numeral]
            section, digit, ones = section + max(digit, 1) * tens, 0, _BELOW.get(tens, 1)
        else:
            scale = CHINESE_SCALES[numeral]
            part = section + digit
            total = max(total + part, 1) * scale if total < scale else total + part * scale
            section, digit, ones = 0, 0, scale // 10
    # 三百五 is 350, 三百零五 is 305
    return total + section + digit * ones


def _read(match: re.Match[str]) -> Iterator[Figure]:
    if found := _DECIMAL_COMMA.fullmatch(match["digits"] or ""):
        # the comma may separate decimals, or two numbers of which the second has the unit
        yield Figure(_plain(Decimal(found[1])))
        yield _figure(match, Decimal(found[2]))
        yield _figure(match, Decimal(f"{found[1]}.{found[2]}"))
    else:
        yield _figure(match, _number(match))


def _figure(match: re.Match[str], number: Decimal) -> Figure:
    after = (match["after"] or "").strip()
    if match["scale"]:
        number *= ENGLISH_SCALES.get(match["scale"]) or CHINESE_SCALES[match["scale"]]
    if match["rest"]:
        number += _rest(match["rest"], match["rest_scale"])
    if match["share"] or after in (_PERCENT, "pct", "‰", "成") or after.startswith(("percent", "per cent")):
        return Figure(_plain(number * _percent_factor(match["share"], after)), _PERCENT)
    if match["before"]:
        return Figure(_plain(number), _CURRENCIES[match["before"]])
    return Figure(_plain(number), _CURRENCIES.get(after) or _UNITS.get(after, ""))


def _rest(digits: str, scale: str) -> Decimal:
    """Return what stands behind 万: the thousands in 2万5千 and 2万5, the rest in 2万5000."""
    if scale:
        return Decimal(int(digits) * CHINESE_TENS[scale])
    return Decimal(int(digits) * (1_000 if len(digits) == 1 else 1))


def _percent_factor(share: str | None, after: str) -> Decimal:
    if share == "千分之" or after == "‰":
        return Decimal("0.1")
    return Decimal(10) if after == "成" else Decimal(1)


def _number(match: re.Match[str]) -> Decimal:
    if digits := match["digits"]:
        return Decimal(re.sub("[,' ]", "", digits))
    if found := match["words"]:
        return Decimal(english_value(re.split("[ -]", found)))
    whole, _, fraction = match["chinese"].partition("点")
    decimals = "".join(str(CHINESE_DIGITS.get(numeral, 0)) for numeral in fraction)
    return Decimal(chinese_value(whole)) + (Decimal(f"0.{decimals}") if decimals else Decimal(0))


def _plain(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
