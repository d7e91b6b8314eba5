"""What a document introduces as a term: by a heading, a label, a table, quotation marks, emphasis or a definition.

Blanks are matched possessively and stretches are bounded, so that no document can make a search take excessively long.
"""

import re
from collections.abc import Iterable, Iterator

_HEADING = re.compile(r"^ {0,3}#{1,6}[^\S\n]++(.{1,200})$|^(.{1,200})\n {0,3}(?:={3,}|-{3,})$", re.MULTILINE)
_NUMBERED = re.compile(
    r"^(?:(?:\d{1,2}\.){1,3}\d{0,2}|第[^\s]{1,4}[章节条])[^\S\n]++([^.\n:：。]{2,60})$", re.MULTILINE
)
_LABEL = re.compile(r"^(?:- |1\. )?(?:\*\*|__)?([^\s*_:：|\n][^*_:：|\n。.]{0,40}?)(?:\*\*|__)?[:：]", re.MULTILINE)
_VALUE = re.compile(r"[:：][^\S\n]*+([^\s:：\n][^:：\n,，;；。|]{0,40}?)[.。;；,，]?(?=$|[|,，;；。])", re.MULTILINE)
_CELLS = re.compile(r"^\|?([^|\n]{0,300}(?:\|[^|\n]{0,300}){1,20})\|?$", re.MULTILINE)
_RULE = re.compile(r"[\s:|-]*")
_MARKED = re.compile(
    r"[\"“‘「『《«‹„]([^\"”’」』》»›\n]{2,60})[\"”’」』》»›]|(?<![\w'])'([^'\n]{2,60})'(?![\w'])|`([^`\n]{2,80})`"
    r"|(?<![A-Za-z\d_*])(?:\*{1,3}|__?)(?=[^\s*_])([^*_\n]{2,60}?)(?<=\S)(?:\*{1,3}|__?)(?![A-Za-z\d_*])"
)
_WORDS = r"((?:[A-Za-z][\w'-]*+ ){0,3}[A-Za-z][\w'-]*+)"
_NAMED = "called|named|nicknamed|dubbed|labell?ed|code-?named"
_CALLED = (
    rf"{_NAMED}|termed|"
    r"known (?:\w{1,12} ){0,3}as|referred to (?:\w+ )?as|"
    r"speaks? of|calls? (?:it|this|them|these|that)|goes by|so-called|herein(?:after)?|stands for|short for|means|"
    r"(?:the )?(?:term|word|code ?word|code ?name|code|nickname|pass ?word|pass ?phrase|pass ?code|pin|key|alias|"
    r"name|phrase|project|operation|initiative|programme|program)"
    r"(?: (?:is|was|for [^.\n]{1,40}? is|to [^.\n]{1,40}? is))?"
)
_HAN = "[\u4e00-\u9fff]"
_BETWEEN, _BETWEEN_HAN = re.compile(r",? (?:and|or) |, "), re.compile("[^\u4e00-\u9fff]+|(?<=.)[和与及]")
"""What stands between names that are listed."""

_CALLED_IN_ENGLISH = re.compile(rf"\b(?:{_CALLED}):? (?:(?:the|an?|our) )?{_WORDS}", re.IGNORECASE)
_LISTED_IN_ENGLISH = re.compile(
    rf"\b(?:{_NAMED}|known as) ((?:{_WORDS}, ){{1,8}}{_WORDS},? (?:and|or) {_WORDS})",
    re.IGNORECASE,
)
_NAMED_IN_CHINESE = "称为|称作|叫做|叫作|叫|名为|命名为|代号|简称|统称|俗称"
_LISTED_IN_CHINESE = re.compile(
    f"(?:{_NAMED_IN_CHINESE})(?:为|是)?[:：“「《\"'* ]{{0,4}}"
    f"({_HAN}{{1,8}}(?:[”」》\"'* ]{{0,2}}[、和与及]{{1,2}}[“「《\"'* ]{{0,2}}{_HAN}{{1,8}}){{1,8}})"
)
_DEFINED_IN_ENGLISH = re.compile(
    rf"(?:^|[.;:(!?] {{0,3}}|\n|- )(?:(?:the|an?|our|by an?|by the) )?{_WORDS},? "
    r"(?:means|refers? to|is (?:defined as|short for|what we call|our (?:name|word|term) for)|denotes?|stands? for|"
    r"we (?:mean|understand))\b",
    re.IGNORECASE | re.MULTILINE,
)
_CLASSED_IN_ENGLISH = re.compile(
    r"(?:^|[.!?] |\n)(?:An?|The) ([A-Za-z][\w'-]*+ [a-z][\w'-]*+) is (?:an?|the|any|what|when|whoever|every)\b",
    re.MULTILINE,
)
"""A sentence that says what something is: "A lost page is one that …"."""

_CALLED_IN_CHINESE = re.compile(
    f"(?:{_NAMED_IN_CHINESE}|称之为|取名|起名|合称|又称|也称|所谓|绰号|外号|昵称|花名|口令|密码|暗号|暗语|密语|口诀)"
    f"(?:为|是|叫)?[:：“「《\"'* ]{{0,4}}({_HAN}{{2,8}})"
)
_DEFINED_IN_CHINESE = re.compile(
    f'(?:^|[。;；,，:：\n|(（ ])(?:所谓)?[“「《"*]{{0,3}}({_HAN}{{2,10}}?)[”」》"*]{{0,3}}[,，:：]?'
    "(?:是指|指的是|即指|定义为|的定义|的意思是|意思是|特指|指)",
    re.MULTILINE,
)
_ENDS = re.compile(
    r"\b(?:is|are|was|were|has|have|must|may|can|for|which|that|who|and|or|in|on|to|at|from|of|by|with|because|as|when|"
    r"if|the|a|an|it|this|not|be|should|will)\b.*",
    re.IGNORECASE,
)
_LABELS = (_HEADING, _NUMBERED, _LABEL)
_SET_OFF = (_MARKED, _DEFINED_IN_ENGLISH, _CLASSED_IN_ENGLISH, _CALLED_IN_CHINESE, _DEFINED_IN_CHINESE)
_LONGEST_CELL, _LONGEST_VALUE = 40, 4


def labels_in(text: str) -> Iterator[str]:
    """Yield the headings, the labels before a colon, and the cells of the tables of a text."""
    yield from _find_matched(_LABELS, text)
    for match in _CELLS.finditer(text):
        cells = (cell.strip(" *`_") for cell in match[1].split("|"))
        yield from (cell for cell in cells if cell and len(cell) <= _LONGEST_CELL and not _RULE.fullmatch(cell))


def find_introduced(text: str) -> Iterator[str]:
    """Yield what a text sets off by marks, defines, calls by a name, or states as the value of a label."""
    yield from _find_matched(_SET_OFF, text)
    for pattern, mark in ((_LISTED_IN_ENGLISH, _BETWEEN), (_LISTED_IN_CHINESE, _BETWEEN_HAN)):
        yield from (name for match in pattern.finditer(text) for name in mark.split(match[1]) if name)
    yield from (found for name in _CALLED_IN_ENGLISH.findall(text) if (found := _ENDS.sub("", name).strip()))
    yield from (value for value in _VALUE.findall(text) if len(value.split()) <= _LONGEST_VALUE)


def _find_matched(patterns: Iterable[re.Pattern[str]], text: str) -> Iterator[str]:
    """Yield what the patterns' groups hold, of which one takes part in each match."""
    return (match[match.lastindex or 0] for pattern in patterns for match in pattern.finditer(text))
