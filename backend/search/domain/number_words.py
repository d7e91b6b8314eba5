"""The words and characters in which English and Chinese write numbers and units.

The outgoing scan reads figures by them, and the comparison of passages takes all of them for the same word. English
words are in lower case and without accents.
"""

import re
from types import MappingProxyType

_ONES_IN_ORDER = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen
"""
_TENS_IN_ORDER = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS_IN_ORDER = "first second third fourth fifth sixth seventh eighth ninth tenth"
_LARGE_ORDINALS = """
eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth thirtieth
fortieth fiftieth sixtieth seventieth eightieth ninetieth hundredth thousandth millionth billionth
"""
_FRACTIONS = "half halves thirds quarter quarters fourths fifths sixths sevenths eighths ninths tenths"

ONES = MappingProxyType({word: value for value, word in enumerate(_ONES_IN_ORDER.split())})
TENS = MappingProxyType({word: value * 10 for value, word in enumerate(_TENS_IN_ORDER.split(), 2)})
SCALES = MappingProxyType(
    {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
    | {"dozens": 12, "hundreds": 100, "thousands": 10**3, "millions": 10**6, "billions": 10**9, "trillions": 10**12}
    | {"k": 10**3, "mn": 10**6, "mio": 10**6, "bn": 10**9}
)
SMALL_ORDINALS = MappingProxyType({word: value for value, word in enumerate(_ORDINALS_IN_ORDER.split(), 1)})
LARGE_ORDINALS = frozenset(_LARGE_ORDINALS.split())
FRACTIONS = frozenset(_FRACTIONS.split())

MONTHS = MappingProxyType(
    {
        alias: names[0]
        for names in (
            ("january", "jan"), ("february", "feb"), ("march", "mar"), ("april", "apr"), ("may",), ("june", "jun"),
            ("july", "jul"), ("august", "aug"), ("september", "sep", "sept"), ("october", "oct"),
            ("november", "nov"), ("december", "dec"),
        )
        for alias in names
    }
)  # fmt: skip

# Between bars is one unit: first the name under which it is compared, then the other ways to write it.
_UNITS = """
% percent pct percentage 百分点 个百分点 個百分點 | ‰ permille | $ usd us$ dollar dollars 美元 美金
€ eur euro euros 欧元 歐元 | £ gbp pound pounds 英镑 英鎊
¥ cny rmb yuan renminbi 元 圆 圓 块钱 塊錢 人民币 人民幣 | ₩ 韩元 韓元 | ₹ rupee rupees | yen jpy 日元 日圆 日圓
franc chf francs 法郎 | hkd 港元 港币 港幣 | cent cents penny pence 分钱 毛钱 | second seconds sec secs 秒 秒钟 秒鐘
millisecond milliseconds ms 毫秒 | minute minutes min mins 分钟 分鐘
hour hours hr hrs 小时 小時 个小时 個小時 钟头 鐘頭 个钟头 個鐘頭
day days 天 日 工作日 个工作日 個工作日 自然日 个自然日 個自然日 | night nights
week weeks 周 週 星期 个星期 個星期 礼拜 禮拜 个礼拜 個禮拜 | fortnight fortnights | month months 月 个月 個月 月份
quarter quarters 季度 个季度 個季度 | year years yr yrs annum 年 年度 岁 歲 | decade decades 年代
century centuries 世纪 世紀 个世纪 個世紀 | o'clock oclock am pm a.m p.m 点钟 點鐘
kilometre km kilometres kilometer kilometers 公里 | metre metres meter meters 米
centimetre cm centimetres centimeter centimeters 厘米 | millimetre mm millimetres millimeter millimeters
mile miles 英里 | foot feet 英尺 | inch inches 英寸 | yard yards | kilogram kg kilo kilos kilograms 公斤
gram grams 克 | milligram mg milligrams | ton tons tonne tonnes 吨 噸 | lb lbs 磅 | ounce ounces oz | 斤
litre litres liter liters 升 | millilitre ml millilitres milliliter milliliters | gallon gallons | barrel barrels
hectare hectares ha 公顷 公頃 | acre acres | 亩 畝 | sqm 平方米 | 平方公里 | 立方米 | byte bytes 字节 字節
bit bits | kb | mb | gb | tb | pb | watt watts 瓦 | kw | mw | gw | kwh 度电 | mwh | volt volts 伏 | amp amps
hz 赫兹 赫茲 | khz | mhz | ghz | degree degrees ° ℃ 摄氏度 攝氏度 | rpm | mph | kmh kph | dpi | fps | bp bps 基点
倍 fold
"""
UNITS = MappingProxyType(
    {alias: unit.split()[0] for unit in re.split(r"[|\n]", _UNITS.strip()) for alias in unit.split()}
    | {"per cent": "%", "per cents": "%"}
)
LETTER_UNITS = MappingProxyType(
    {"h": "hour", "m": "metre", "s": "second", "g": "gram", "t": "ton", "l": "litre", "w": "watt", "v": "volt"}
    | {"d": "day", "c": "degree", "f": "degree", "x": "倍"}
)
"""Units of one letter: they count behind digits only."""

CHINESE_UNITS_BEHIND_DIGITS = MappingProxyType(dict.fromkeys("分点點", "o'clock") | {"时": "hour", "時": "hour"})
"""Characters that are a unit behind digits; behind numerals they mean something else as often (十分, 三点建议)."""

CHINESE_UNITS_BEHIND_MORE = MappingProxyType(
    {"成": "成", "度": "degree", "折": "折", "块": "¥", "塊": "¥", "角": "角", "刻": "刻", "里": "里"}
    | {"号": "day", "號": "day"}
)
"""Characters that are a unit, but not behind 一 and 十 alone (一度, 一成不变, 十成)."""

CHINESE_DIGITS = MappingProxyType(
    {numeral: value for value, numeral in enumerate("零一二三四五六七八九")}
    | {numeral: value for value, numeral in enumerate("零壹贰叁肆伍陆柒捌玖")}
    | {"〇": 0, "两": 2, "兩": 2, "貳": 2, "參": 3, "陸": 6}
)
CHINESE_FORMAL = "壹贰叁肆伍陆柒捌玖貳參陸拾佰仟"
"""Numerals of contracts and cheques. Alone they are mostly another word (大陆, 队伍), so a row of them is read."""

CHINESE_TENS = MappingProxyType({"十": 10, "百": 100, "千": 1000, "拾": 10, "佰": 100, "仟": 1000, "廿": 20, "卅": 30})
CHINESE_SCALES = MappingProxyType({"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12})

_CHINESE_NUMERALS = frozenset((*CHINESE_DIGITS, *CHINESE_TENS, *CHINESE_SCALES, "半"))
_ENGLISH_UNITS = frozenset(unit for unit in UNITS if unit.isascii() and len(unit) > 1)
_ENGLISH_NUMERALS = _ENGLISH_UNITS.union(ONES, TENS, SCALES, SMALL_ORDINALS, LARGE_ORDINALS, FRACTIONS, MONTHS)


def is_of_a_figure(word: str) -> bool:
    """Tell whether a word, or a CJK character, in normal form can belong to a figure: numbers, units and months."""
    if word in _CHINESE_NUMERALS or word in _ENGLISH_NUMERALS:
        return True
    return not word.isalpha() and any(map(str.isnumeric, word))
