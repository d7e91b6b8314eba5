"""Words that count or date without being numerals: written together, old measures, groups, feasts, ages."""

import re

from shared.plain_text.figures import ENGLISH_ONES, ENGLISH_TENS

SPANS_OF_TIME = "seconds?|minutes?|hours?|days?|weeks?|fortnights?|months?|quarters?|years?|decades?|centur(?:y|ies)"

_ONES, _TENS = "|".join(sorted(ENGLISH_ONES, key=len, reverse=True)), "|".join(ENGLISH_TENS)
_PIECES = f"{_ONES}|{_TENS}|fourty|ninty|hundred|thousand|[mb]illion|dozen|score"
_RANKS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|hundredth|thousandth"
_COINS = "pence|penn(?:y|ies|yworth)"
_UNITS = f"{SPANS_OF_TIME}|dollars?|euros?|pounds?|yuan|people|persons?|items?|pieces?|staff|users?|units?|times"
_GROUPS = (
    "duets?|duos?|trios?|quartet(?:te)?s?|quintet(?:te)?s?|sextet(?:te)?s?|septet(?:te)?s?|octet(?:te)?s?|nonets?|"
    "triads?|tetrads?|pentads?|hexads?|heptads?|octads?|decads?|triplets?|quadruplets?|quintuplets?|"
    "twosomes?|threesomes?|foursomes?"
)
_RHYTHMS = "annual(?:ly)?|weekly|monthly|yearly|quarterly|daily|hourly|enni(?:al(?:ly)?|um|a)|centenn?(?:ary|ial)"
_ABBREVIATED_MONTHS = "jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec"
_ABBREVIATED_DAYS = "mon|tues?|wed|thur?s?|fri"
_BESIDE = (
    "in|by|since|until|till|from|during|before|after|late|early|mid|end of|start of|beginning of|as of|every|each|"
    "next|last|this|due|through|ends?|ended|ending|begins?|began|beginning|starts?|started|starting|expires?|closes?"
)
_AFTER = "ends?|ended|begins?|began|starts?|started|onwards?|expires?|closes?|deadline|through|until|till"
_FEASTS = (
    "michaelmas|lammas|candlemas|martinmas|whitsun(?:day|tide)?|lady ?day|midsummer|midwinter|christmas(?:tide)?|xmas|"
    "easter(?:tide)?|yule(?:tide)?|new year s(?: (?:eve|day))?|new year'?s? (?:eve|day)|thanksgiving|hallowe'?en|"
    "hallowmas|all ?saints|twelfthtide|pentecost|ramadan|eid|diwali|hanukkah|passover|boxing day|bank holiday|"
    "(?:vernal|autumnal) equinox|equinox(?:es)?|solstices?"
)
_ENGLISH = re.compile(
    rf"\b(?:{_PIECES})(?:and)?(?:{_PIECES}|{_RANKS})(?:(?:and)?(?:{_PIECES}|{_RANKS}))*(?:s|fold|th)?\b"
    rf"|\b(?:{_ONES}|{_TENS})(?:ish|odd|something|some|plus|{_COINS})\b|\b(?:fourty|ninty)\b"
    r"|\b(?:tuppen(?:ce|ny)|thruppen(?:ce|ny)|ha'?penn(?:y|ies)|farthings?|shillings?|fivers?|tenners?)\b"
    rf"|\ba (?:gross|grand|score|ream|brace) (?:of (?:[a-z]+ ){{0,2}})?(?:{_UNITS})\b|\ba (?:gross|grand) of\b"
    r"|\b(?:a|few|some|per|several) grand(?= (?:per|each|in|a|at)\b|\s*[.,;:!?]|$)"
    r"|\btith(?:es?|ed|ing)\b|\bdecades?\b|\bmillenni(?:a|um|ums)\b"
    rf"|\b(?:semi|demi|bi|tri|quadri?|quin|quinqu|sexa?|sept|octo?|dec|bicent|tricent)[- ]?(?:{_RHYTHMS})\b"
    r"|\b(?:bi|tri|sesqui)?centen(?:ary|aries|nial)\b"
    rf"|\b(?:{_GROUPS}) of\b|\b(?:pairs?|couple) of (?:[a-z]+ ){{0,2}}(?:{_UNITS})\b"
    rf"|\b(?:{_BESIDE}) (?:{_ABBREVIATED_MONTHS})\b|\b(?:{_ABBREVIATED_MONTHS}|mar) (?:{_AFTER})\b"
    r"|\b(?:in|by|since|until|till|from|during|late|early|mid|end of|before|after) mar\b(?! (?:the|any|its?)\b)"
    rf"|\b(?:on|by|every|each|until|till|before|after|next|last) (?:{_ABBREVIATED_DAYS})\b"
    rf"|\b(?:{_FEASTS})\b",
    re.ASCII,
)

_NUMERALS = "一二三四五六七八九十百千万两"
_CHINESE = re.compile(
    "花甲|古稀|耄耋|而立|不惑|知天命|弱冠|及笄|期颐|豆蔻年华|(?<!花)甲子"
    f"|[半{_NUMERALS}数]载(?!难逢)(?!入|体|荷|重|明|具|有|于)|半晌|[一半两几]个?(?:钟头|时辰)|[一半两几数]刻钟|点钟"
    "|十分一(?!致|般|定|样|体|直|些|流|律|目|贯|向|味|站|次|线|刀)"
    "|(?<!为)什[一二三四五六七八九]"
    "|春节|中秋|端午|国庆|元旦|除夕|元宵|重阳节|清明节|圣诞|冬至|夏至|春分|秋分|腊八|劳动节|儿童节|建军节|教师节"
)


def counts_in_english(folded: str) -> bool:
    """Tell whether a text in the gate's normal form counts or dates in English words that are no numerals."""
    return _ENGLISH.search(folded) is not None


def counts_in_chinese(dense: str) -> bool:
    """Tell whether a folded text without blanks counts or dates in Chinese words that are no numerals."""
    return _CHINESE.search(dense) is not None
