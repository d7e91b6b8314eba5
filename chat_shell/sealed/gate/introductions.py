"""How documents introduce a term: by markup, quotation marks, a definition, a naming, or as a label.

Blanks are taken possessively and stretches bounded: whoever writes documents must not be able to make a search of them
take for ever.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

HEADING = re.compile(r"^ {0,3}#{1,6}[^\S\n]++(.{1,300})$|^(.{1,200})\n {0,3}(?:={3,}|-{3,})$", re.MULTILINE)
_TITLE = re.compile(r"^(?: {0,3}#|(?:title|标题)[:：])[^\S\n]*+(?=[^#\s])(.{1,300})$", re.MULTILINE | re.IGNORECASE)
_NUMBERED = re.compile(
    r"^[^\S\n>]{0,3}+(?:> *+)?(?:\d{1,2}\.){1,3}(?:\d{1,2})?[^\S\n]++([^.\n:：。]{2,60})$", re.MULTILINE
)
_CELLS, _LONGEST_ROW = " | ", 600
_TABLE_HEAD = re.compile(r"^([^|\n]{0,500}+\|.{0,500}+)\n[^\S\n]*+\|?+[^\S\n]*+:?-{2,}", re.MULTILINE)
_TABLE_ROW = re.compile(r"^\|(?![-: ]++\|)[^\S\n]*+([^|\n]{1,60}?)[^\S\n]*+\|", re.MULTILINE)
_LIST_LABEL = re.compile(
    r"^[^\S\n]*+(?:[-*+•]|\d++[.)、])[^\S\n]*+(?:\*\*|__)?([^\s*_:：\n][^*_:：\n]{1,40}?)(?:\*\*|__)?[:：]",
    re.MULTILINE,
)

_CODE = re.compile(r"`([^`\n]{2,80})`")
_SET_OFF = re.compile(r"(?<![\w*])(\*{1,3}|__?)(?=[^\s*_])([^*_\n]{2,60}?):?(?<=\S)\1(?![\w*])")
_QUOTED = re.compile('["“‘「『]([^"”’」』\n]{2,60})["”’」』]')
_TAGGED = re.compile(r"<(b|strong|em|i|dt|dfn|th|code|h[1-6])>([^<\n]{2,60})</\1>", re.IGNORECASE)
_TITLED = re.compile("《([^》\n]{2,60})》")

_MARKS = r"[\"“‘*_`]{0,3}+"
_NO_TERM = "the|an?|to|for|by|in|on|at|off|out|up|it|this|that|if|when"
_TERM = rf"{_MARKS}((?!(?:{_NO_TERM})\b)[A-Za-z][\w'-]*+(?: [A-Za-z][\w'-]*+){{0,2}}?)"
_BEHIND_TERM = (
    "if|when|where|while|is|are|was|were|has|have|had|takes?|for|which|that|who|and|or|means?|in|on|to|at|from|of|by|"
    "with|because|as|the|an?"
)
_TERM_ENDS = rf"[\"”’*_`]{{0,3}}+(?=[.,;:)\n|]|$| (?:{_BEHIND_TERM})\b)"
_ARTICLE = r"(?:(?:the|an?) )?"
_CALLERS = (
    "is|are|was|were|be|been|it|this|that|these|them|we|they|staff|people|everyone|so|what we|often|also|now|simply|"
    "internally|locally|here"
)
_CALLS = "call(?:s|ed)?|named|nicknamed|dubbed|termed|labelled|labeled"
_ENGLISH = (
    # what it is: "a soft hold means …"
    re.compile(
        rf"(?:^|[.;:(|!?]\s{{1,3}}|\n){_ARTICLE}{_MARKS}([A-Za-z][\w' -]{{1,60}}?){_MARKS},? "
        r"(?:means|refers? to|(?:is|are) (?:defined as|short for)|denotes?|stands? for)\b",
        re.IGNORECASE | re.MULTILINE,
    ),
    # a label that says what it is: "Lost page: one that …"
    re.compile(
        r"^([A-Za-z][\w'-]*+(?: [a-z][\w'-]*+){1,2})(?:: | [-–—] )(?:an?|the|any|one|those|what|whoever)\b",
        re.MULTILINE,
    ),
    # "An idle bell is a bell …", at a sentence's beginning
    re.compile(
        r"(?:^|[.!?] |\n)An? ([A-Za-z][\w'-]*+ [a-z][\w'-]*+) is (?:an?|the|any|what|whoever|every)\b", re.MULTILINE
    ),
    # what is set off and said to be something, or stands in brackets: "a *soft hold* is …", "(the lost page)"
    re.compile(r"[\"“*_]([A-Za-z][^\"”*_\n]{1,40}?)[\"”*_]{1,3}+,? (?:is|are|means)\b"),
    re.compile(r"\((?:the|an?|our) ([A-Za-z][\w'-]*+(?: [A-Za-z][\w'-]*+){0,2})\)"),
    # "by a soft hold we understand …"
    re.compile(rf"\bby {_ARTICLE}{_TERM}[\"”’*_`]{{0,3}}+,? we (?:mean|understand|refer)\b", re.IGNORECASE),
    # how it is called
    re.compile(
        rf"\b(?:(?:{_CALLERS}) (?:{_CALLS})|known (?:[a-z]{{1,12}} ){{0,3}}as|spoken of as|speaks? of|"
        r"referred to (?:\w+ly )?as|goes by the name of|counts as|nicknames? it|code-?named|here(?:in)?after|so-called|"
        r"under the (?:code )?name(?: of)?|"
        rf"the (?:term|word|code ?name|nickname)|word is|name is|code ?name:) {_ARTICLE}{_TERM}{_TERM_ENDS}",
        re.IGNORECASE | re.MULTILINE,
    ),
)
_LEVELS = "[Cc]lass|[Gg]rade|[Ll]evel|[Tt]ier|[Ss]tage|[Pp]hase|[Bb]and|[Zz]one|[Ll]ane|[Pp]roject|[Oo]peration"
_VENTURES = "[Pp]rogram(?:me)?|[Ii]nitiative|[Pp]ilot|[Cc]ampaign|[Ss]cheme|[Tt]ask ?[Ff]orce|[Cc]odename"
_NAME = "[A-Z][a-z'-]++"
_KINDS = (
    re.compile(rf"\b(?:{_LEVELS}|{_VENTURES}) ({_NAME}(?: {_NAME}){{1,3}}+)"),
    re.compile(rf"\b((?:{_LEVELS}) {_NAME})\b"),
)
"""A name behind its kind: "class Stone", "Project Second Skin"."""

_HAN = "[\u4e00-\u9fff]"
_HAN_MARKS = '[“「《"*]{0,3}+'
_HAN_ENDS = '(?=[”」》"*]{0,3}[。，；、：:！？（）()\\s|]|[”」》"*]{1,3}|$)'
_HAN_TERM = f"{_HAN}{{2,7}}?"
_PART_OF_ROW = f"(?:(?![和及与]){_HAN}){{1,6}}"
_HAN_ROW = f'{_PART_OF_ROW}?(?:[”」》"*]{{0,3}}[、和及与]{_HAN_MARKS}{_PART_OF_ROW}?){{1,7}}'
_HAN_ROW_ENDS = '(?=[”」》"*]{0,3}(?:[。，；：（(\\s]|[一二三四五六七八两几][个种级档类项层道]|$))'
_CHINESE_CALLS = (
    "(?:分别|依次)(?:叫作|叫做|称为|称作|名为|[叫称是为])|(?:内部|习惯|私下|大家|都|就|也|常)(?:叫作|叫做|称为|称作|[叫称])[它其]?|"
    "以下简称|下称|简称为?|称之为|称为|称作|统称为?|合称|又称|也称|俗称|别称|所谓|命名为|名为|取名为?|起名为?|代号为?|绰号|外号|昵称|"
    "叫作|叫做|叫它|叫他|唤作"
)
_CHINESE = (
    re.compile(
        f'(?:^|[。；，：:\n|（(]|[-*+•] ){_HAN_MARKS}(?:所谓)?{_HAN_MARKS}({_HAN}{{2,12}}?)[”」》"*]{{0,3}}+'
        "(?:[，：:]?(?:是指|指的是|定义为|的定义是)|[，：:]指|即指)",
        re.MULTILINE,
    ),
    re.compile(
        f"(?:{_CHINESE_CALLS})[：:]?{_HAN_MARKS}"
        f'({_HAN_TERM}(?:[”」》"*]{{0,3}}、{_HAN_MARKS}{_HAN_TERM}){{0,7}}){_HAN_ENDS}',
        re.MULTILINE,
    ),
    re.compile(f'[“「《"*]({_HAN}{{2,12}})[”」》"*]{{1,3}}+[，：:]?(?:即|是|指)'),
    # several at once: "分为平水、涨水、漫堤三个状态"
    re.compile(f"(?:分为|分成|定为|列为|划为|设为|叫|称)[：:]?{_HAN_MARKS}({_HAN_ROW}){_HAN_ROW_ENDS}"),
)
_BETWEEN_HAN = re.compile('[”」》"*]*[、和及与][“「《"*]*')


def titles_in(text: str) -> Iterator[str]:
    """Yield the headings of the first level of a Markdown text."""
    yield from (match[1] for match in _TITLE.finditer(text))


def headings_in(text: str) -> Iterator[str]:
    """Yield the headings and table heads of a Markdown text."""
    yield from (match[match.lastindex or 0] for match in HEADING.finditer(text))
    yield from (match[1] for match in _NUMBERED.finditer(text))
    for match in _TABLE_HEAD.finditer(text):
        yield from (cell.strip() for cell in match[1].split("|") if cell.strip())
    for above, line in pairwise(("", *text.split("\n"))):
        if _is_row(line) and not _is_row(above):
            yield from (cell.strip() for cell in line.split(_CELLS))


def rows_in(text: str) -> Iterator[str]:
    """Yield what stands in front of a table's rows."""
    yield from (match[1] for match in _TABLE_ROW.finditer(text))
    yield from (line.partition(_CELLS)[0].strip() for line in text.split("\n") if _is_row(line))


def items_in(text: str) -> Iterator[str]:
    """Yield what stands before the colon of a list's items."""
    yield from (match[1] for match in _LIST_LABEL.finditer(text))


def quoted_in(text: str) -> Iterator[str]:
    """Yield what stands in quotation marks."""
    yield from (match[1] for match in _QUOTED.finditer(text))


def set_off_in(text: str) -> Iterator[str]:
    """Yield what a text sets off by markup, marks of a title, or its kind in front of it."""
    yield from (match[1] for pattern in (_CODE, _TITLED, *_KINDS) for match in pattern.finditer(text))
    yield from (match[2] for pattern in (_SET_OFF, _TAGGED) for match in pattern.finditer(text))


def defined_in(text: str) -> Iterator[str]:
    """Yield what a text defines, or says the name of."""
    yield from (match[1] for pattern in _ENGLISH for match in pattern.finditer(text))
    for pattern in _CHINESE:
        for match in pattern.finditer(text):
            yield from _BETWEEN_HAN.split(match[1])


def _is_row(line: str) -> bool:
    """Tell whether a line is a row of a table without a frame, as documents other than Markdown are read."""
    return _CELLS in line and not line.lstrip().startswith("|") and len(line) <= _LONGEST_ROW
