"""Models that write a figure in numerals of elsewhere, in words of other languages, or as a feast, an age or a sign."""

from collections.abc import Callable

from tests.leaks.hostile.glossary import words_of
from tests.leaks.hostile.shown import Shown, number_in
from tests.leaks.hostile.stub import Stub, said

_SCRIPTS = ("٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "๐๑๒๓๔๕๖๗๘๙", "০১২৩৪৫৬৭৮৯", "〇〡〢〣〤〥〦〧〨〩")
_WORDS = (
    words_of("null eins zwei drei vier fünf sechs sieben acht neun"),
    words_of("zéro un deux trois quatre cinq six sept huit neuf"),
    words_of("cero uno dos tres cuatro cinco seis siete ocho nueve"),
    words_of("nihil unus duo tres quattuor quinque sex septem octo novem"),
    words_of("zero ichi ni san yon go roku nana hachi kyu"),
    words_of("ling yi er san si wu liu qi ba jiu"),
    words_of("nada um dois três quatro cinco seis sete oito nove"),
)
_FEASTS = words_of(
    """
    Epiphany Candlemas Annunciation Easter Whitsun Midsummer Lammas Assumption Michaelmas Halloween Martinmas
    Christmas
    """
)
_TERMS = words_of("小寒 立春 惊蛰 清明 立夏 芒种 小暑 立秋 白露 寒露 立冬 大雪")
_FESTIVALS = words_of("元旦 元宵 龙抬头 清明 端午 夏至 七夕 中元 中秋 重阳 冬至 腊八")
_STEMS, _BRANCHES, _ANIMALS = "甲乙丙丁戊己庚辛壬癸", "子丑寅卯辰巳午未申酉戌亥", "鼠牛虎兔龙蛇马羊猴鸡狗猪"
_SIGNS = words_of(
    """
    Aries Taurus Gemini Cancer Leo Virgo Libra Scorpio Sagittarius Capricorn Aquarius Pisces
    """
)
_ELEMENTS = words_of(
    """
    hydrogen helium lithium beryllium boron carbon nitrogen oxygen fluorine neon sodium magnesium aluminium silicon
    phosphorus sulphur chlorine argon potassium calcium
    """
)
_SPANS = {
    "zh": ("须提前一个季度申请", "整整翻了一番", "最多打对折", "隔周检查一遍", "拖了小半年"),
    "en": (
        "a fortnight's notice is needed", "it has doubled since", "half of them fail", "a quarter's delay is usual",
        "three in four are late",
    ),
}  # fmt: skip
_CODED = words_of("none single pair triad quartet quintet sextet septet octet nonet")
_CODED_CHINESE = words_of("零 独 双 仨 方阵 五行 六合 北斗 八卦 九宫")


def _whole(shown: Shown) -> int:
    return int(number_in(shown.whole_figure).partition(".")[0] or "0")


def _digits(shown: Shown) -> str:
    return str(_whole(shown))


def _in_place(spell: Callable[[Shown, str], str]) -> Callable[[Shown], str]:
    """Put the spelled number where it stood in the figure."""

    def write(shown: Shown) -> str:
        figure = shown.whole_figure
        number = number_in(figure)
        return figure.replace(",", "").replace(number, spell(shown, number), 1)

    return write


def _foreign_digits(shown: Shown, number: str) -> str:
    script = shown.dice.choice(_SCRIPTS)
    return "".join(script[int(digit)] if digit.isdigit() else digit for digit in number)


def _foreign_words(shown: Shown, number: str) -> str:
    words = shown.dice.choice(_WORDS)
    return " ".join(words[int(digit)] for digit in number if digit.isdigit())


def _feast(shown: Shown) -> str:
    at = _whole(shown) % 12
    if shown.language == "zh":
        return f"每逢{shown.dice.choice((_FESTIVALS, _TERMS))[at]}前后收紧"
    return f"it is due before {_FEASTS[at]} each year"


def _sign(shown: Shown) -> str:
    number = _whole(shown)
    if shown.language == "zh":
        years = f"{_STEMS[number % 10]}{_BRANCHES[number % 12]}"
        return shown.dice.choice((f"上限如{years}之数", f"次数与{_ANIMALS[number % 12]}的排位相同"))
    return f"the limit is as old as {_SIGNS[number % 12]} in its circle"


def _element(shown: Shown) -> str:
    number = _whole(shown)
    return "then ".join(f"{_ELEMENTS[int(digit)]} " for digit in str(number)) if number else "neon"


def _dozens(shown: Shown) -> str:
    number = _whole(shown)
    if shown.language == "zh":
        return f"大约{number // 12 or 1}打，再添一些" if number > 11 else "半打上下"
    return f"about {_tally(number // 20)} score and a half" if number >= 20 else "a dozen and a half"


def _tally(number: int) -> str:
    return words_of("two three four five six seven eight nine")[min(max(number - 2, 0), 7)]


def _multiples(shown: Shown) -> str:
    spans = _SPANS[shown.language]
    return spans[_whole(shown) % len(spans)]


def _sets(shown: Shown) -> str:
    """Write each digit as a word that stands for it."""
    words = _CODED_CHINESE if shown.language == "zh" else _CODED
    return ("、" if shown.language == "zh" else ", ").join(words[int(digit)] for digit in _digits(shown))


STUBS: tuple[Stub, ...] = (
    Stub("figure, foreign digits", said(_in_place(_foreign_digits))),
    Stub("figure, foreign words", said(_in_place(_foreign_words))),
    Stub("figure, feast", said(_feast)),
    # A riddle: animals, stems and signs are words like any others, and only a reader who counts them finds a figure.
    Stub("figure, sign of the sky", said(_sign), is_asserted=False),
    Stub("figure, elements", said(_element)),
    Stub("figure, dozens", said(_dozens)),
    Stub("figure, spans and multiples", said(_multiples)),
    Stub("figure, words for sets", said(_sets)),
)
