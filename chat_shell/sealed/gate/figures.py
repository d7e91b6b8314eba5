"""Check `figures`: no number in any writing, date, share or multiple; idioms that only sound like one may stay.

The words are read in the gate's normal form; numerals of all scripts and capitals (May, V) in the raw text.
"""

import re
import unicodedata
from functools import cache

from chat_shell.sealed.gate.counted_words import SPANS_OF_TIME, counts_in_chinese, counts_in_english
from chat_shell.sealed.gate.folding import fold
from chat_shell.sealed.gate.word_lists import CHINESE_IDIOMS
from shared.plain_text.figures import CHINESE_DIGITS, CHINESE_SCALES, CHINESE_TENS, ENGLISH_ONES, ENGLISH_TENS

_NUMBERS = "|".join(
    (
        *(word for word in ENGLISH_ONES if word != "one"), *ENGLISH_TENS, *(f"{word[:-1]}ies" for word in ENGLISH_TENS),
        "hundreds?", "thousands?", "[mbtz]illions?", "trillions?", "dozens?", "nought", "nil", "naught",
    )
)  # fmt: skip
_ORDINALS = (
    "fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|[a-z]{3,7}teenth|twentieth|thirtieth|fortieth|"
    "fiftieth|sixtieth|seventieth|eightieth|ninetieth|hundredth|thousandth|millionth"
)
_MONTHS = "january|february|april|june|july|august|september|october|november|december"
_WEEKDAYS = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_WHEN = "in|by|since|until|till|from|during|last|end of|start of|beginning of|month of|as of"
_BEHIND_A_DATE = (
    "and|or|to|for|at|by|in|on|as|if|is|was|this|next|with|without|until|due|per|the|its|no|of (?:this|last|next)"
)
_ENGLISH = re.compile(
    rf"\b(?!two-(?:way|sided|faced)\b)(?:{_NUMBERS}|{_ORDINALS})(?:s|fold)?\b"
    r"|\b(?:percent(?:ages?|iles?)?|per cents?|pct|prozent|half|halves|halved|halving|twice|thrice|quarters?|quarterly|"
    r"twofold|fortnight(?:s|ly)?|semesters?|trimesters?|three-?quarters?|twelvemonths?)\b"
    r"|\b(?:doubl|tripl|trebl|quadrupl|quintupl)(?:e|es|ed|ing)\b"
    r"(?![ -](?:check|entr(?:y|ies)|standards?|edged|handling|booking|work|counting|role)\b)"
    rf"|\b(?:part of|within|under|over) an? (?:{SPANS_OF_TIME})\b|\ban? (?:{SPANS_OF_TIME}) or so\b"
    rf"|\b(?:{_MONTHS}|{_WEEKDAYS})\b"
    # third: a share, a rank or a date, but not "third party" nor "third, …" or "and third a …" in a row of points
    r"|\bthirds\b|\bone[- ]third\b|\bthird\b(?![ -]part(?:y|ies)\b)(?!,)(?!(?<=and third) (?:an?|the)\b)"
    # one: a quantity only with a unit, a scale or another number beside it
    rf"|\bone (?:one|point|half|{SPANS_OF_TIME}|dollars?|euros?|pounds?|yuan|to one)\b"
    r"|\bone-(?:point|half|third|in|to|day|week|month|year|hour)\b"
    r"|\b(?:plus|minus|point|times|exactly|level|tier|phase) one\b"
    # second: a span of time or a date, but neither a rank nor "second, …"
    rf"|\bseconds\b|\b(?:per|each|every|a few|split|millis?|one) ?-?second\b|\bsecond of (?:{_MONTHS}|may|march)\b"
    r"|\b(?:first|second|third|last) (?:quarter|half|of (?:may|march)|decile)\b"
    r"|\bthe (?:first|second) of (?:the month|each)"
    # may and march: months only
    rf"|\b(?:{_WHEN}) (?:may|march)\b|\b(?:may|march) (?:of (?:this|last|next)|and (?:{_MONTHS}))\b"
    r"|\b(?:late|early|mid)[ -](?:may|march)\b(?= ?(?:[.,;:!?]|$|(?:and|or|to|of|this)\b))"
    rf"|\b(?:{_WHEN}|for|the|of|to) (?:late|early|mid)[ -](?:may|march)\b"
    rf"|\b(?:may|march) (?:first|second)\b(?= ?(?:[.,;:!?]|$|(?:{_BEHIND_A_DATE})\b))"
    r"|\bmarch\b(?! (?:towards?|forward|on|ahead|through|past|out)\b)"
    r"|[%‰$€£¥]",
    re.ASCII,  # a letter beside an ideograph begins a word, too
)  # fmt: skip
_CAPITALS = re.compile(
    r"(?<=[a-z,;] )(?:May|March)\b(?! I\b)"
    r"|\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Mon|Tue|Tues|Wed|Thu|Thur|Thurs|Fri|Sat|Sun)\b\.?"
    r"|\bQ ?(?:one|two|three|four)\b",
    re.ASCII,
)
_ROMAN = re.compile(r"\bm{0,3}(?:cm|cd|d?c{0,4})(?:xc|xl|l?x{0,4})(?:ix|iv|v?i{0,4})\b", re.ASCII)
_NO_ROMAN = frozenset({"", "i", "c", "d", "l", "m", "mm", "cc", "cd", "cv", "dc", "di", "dim", "li", "md", "mi", "mid",
                       "mild", "mill", "mix", "dill", "ill", "ci", "mc", "mdm", "vim", "dl", "ml"})  # fmt: skip
_LONE_ROMAN = re.compile(r"\b[VX]\b", re.ASCII)

_COUNTED_ROMAN = re.compile(
    rf"\b([ivxlcdm]+) ?(?:{SPANS_OF_TIME}|percent|dollars?|euros?|pounds?|yuan|people|items?|pieces?|times)\b",
    re.ASCII,
)
_WORDS_LIKE_ROMAN = frozenset({"i", "mix", "mid", "mild", "mill", "dim", "vim", "ill", "dill", "lid", "did", "vivid"})

_FINANCIAL = "壹贰貳叁參肆柒捌玖佰仟廿卅"
_DIGITS = "".join(numeral for numeral in CHINESE_DIGITS if numeral not in "俩仨")
_NUMERALS = "".join(dict.fromkeys((*_DIGITS, *CHINESE_TENS, *CHINESE_SCALES)))
_MANY = "二三四五六七八九十百千万亿两"
_MEASURES = (
    "个|項|项|条|份|次|天|日|月|年|周|星期|礼拜|小时|分钟|秒|刻钟|元|块|角|美元|欧元|倍|成|折|岁|人|名|位|家|套|台|件|种|类|"
    "级|层|轮|期|季|页|章|节|款|点|号|步|批|组|阶段|米|公里|千克|公斤|克|吨|升|度|遍|趟|场|篇|册|卷|本|张|只|支|道|门|户|"
    "档|代|世纪|年代|者中|分之|大类|大项|大块"
)
_SPANS_ZH = (
    "年(?!度|龄)|个?多?月(?!度|底|初|末)|周(?!期|边|全|围|密|知|报|到(?!期))|个?多?(?:星期|礼拜)|天(?!然|生的)|日(?!常|志|程|益|期|后|报)|"
    "个?(?:半|整|多)?(?:小时|钟头)|分钟|秒|个?季度|季(?!节)|元(?!数|素|化)|成(?!为|功|立|熟|员|型|就)|倍|折(?!扣|中)|半|刻钟|个?[亿万]|"
    "个工作日|个百分点|世纪|年代|百分|人(?!员|士|才|力|事|工|为|们|性|生|体|类|群|格)"
)
_COUNTED_ROMAN_ZH = re.compile(f"(?<![a-z])[ivxlcdm]+(?:余|多)?(?:{_MEASURES})")
_IDIOM_LENGTH = 4
_PARTS = "季|章|条|款|节|页|版|号|周|月|年|天|日|期"
_IDIOMS_ZH = re.compile(
    f"(?<![{_NUMERALS}])(?:"
    "十分(?!钟|之|位)|第三方|三方|一致|统一|唯一|单一|同一|不一|逐一|另一|某一|任一|一般|一旦|一些|进一步|一系列|一方面|一定|一起|一直|"
    "一并|一律|一体|一线|一手|一贯|一次性|一站式|一刀切|一味|一经|一同|一举|一再|一时|一向|万一|二者|两者|两难|两极|两端|两可|两全|一一|"
    "千万(?=不|别|要|注)|成千上万|"
    "百年大计|二维码|二次(?=灾害|污染|伤害|开发|利用|加工|供水|确认)|再三|一步到位|第一时间|万无一失|一目了然|一成不变|一视同仁|三思|"
    "一概|一切|一度|一带|一面|一端|一边|归一|(?<!分)之一|合一|首一|一齐|一道|一样|一来|一点(?!半|[零〇一二三四五六七八九])|一路|一类|一块)"
)  # fmt: skip
_CHINESE = re.compile(
    f"[{_NUMERALS}]{{2,}}|[{_NUMERALS}]比[{_NUMERALS}]|[{_FINANCIAL}]|[{_NUMERALS}]点[{_NUMERALS}]"
    f"|(?<!第)[{_MANY}]+(?:余|多|来)?(?:{_MEASURES})|第[{_MANY}](?:{_MEASURES})|第一(?:{_PARTS})"
    f"|一(?:{_SPANS_ZH})|[多每前后上下近约超][{_MANY}](?:{_MEASURES})"
    "|[数上近超约逾][十百千万亿]|[十百千万亿]余"
    f"|百分(?:之|比|点|数|百|率)|[几多{_NUMERALS}]分之|半(?:[年数天月日价个小]|成(?!品))|[一过近减折大对各]半(?!途|成品)|翻番|翻[一两]番|翻倍|成倍|加倍|数倍|倍(?!增器|加器)"
    "|(?:星期|礼拜|周)[一二三四五六日天](?!致|常|志|程|体)|季度|[正腊]月(?!度)|双周|旬[度报]?|[俩仨]|一打|月[初底末]"
)


def has_figure(text: str) -> bool:
    """Tell whether a raw text holds a figure."""
    return any(_is_numeral(character) for character in set(text)) or has_figure_words(fold(text)) or _has_capitals(text)


def has_figure_words(folded: str) -> bool:
    """Tell whether a text in the gate's normal form holds a figure in words."""
    if _ENGLISH.search(folded) or counts_in_english(folded) or _has_roman(folded):
        return True
    if folded.isascii():
        return False
    dense = folded.replace(" ", "")
    if _COUNTED_ROMAN_ZH.search(dense) or counts_in_chinese(dense):
        return True
    return _CHINESE.search(_without_idioms(dense)) is not None


def _has_roman(folded: str) -> bool:
    """Tell whether a text holds a Roman numeral; one that may be a word counts before a unit only."""
    if any(match[0] not in _NO_ROMAN for match in _ROMAN.finditer(folded)):
        return True
    return any(match[1] not in _WORDS_LIKE_ROMAN for match in _COUNTED_ROMAN.finditer(folded))


def _without_idioms(folded: str) -> str:
    text = folded
    for start in range(len(folded) - _IDIOM_LENGTH + 1):
        if (idiom := folded[start : start + _IDIOM_LENGTH]) in CHINESE_IDIOMS:
            text = text.replace(idiom, "□")
    return _IDIOMS_ZH.sub("□", text)


def _has_capitals(text: str) -> bool:
    compatible = unicodedata.normalize("NFKC", text)
    return _CAPITALS.search(compatible) is not None or _LONE_ROMAN.search(compatible) is not None


@cache
def _is_numeral(character: str) -> bool:
    """Tell whether a character is a numeral of any script; Chinese ones are letters, and read as words."""
    if unicodedata.category(character).startswith("N"):
        return character != "〇"
    return any(part.isdigit() for part in unicodedata.normalize("NFKC", character))
