"""How Chinese documents define a term or say its name; their texts come in NFKC, which halves commas and colons."""

import re
from collections.abc import Iterator

_HAN = "[\u4e00-\u9fff]"
_HAN_MARKS = '[“「《"*]{0,3}+'
_HAN_ENDS = '(?=[”」》"*]{0,3}[。.,;、:!?()\\[—\\s\\d|]|[”」》"*]{1,3}|$)'
_HAN_TERM = f"{_HAN}{{2,7}}?"
_PART_OF_ROW = f"(?:(?![和及与]){_HAN}){{1,6}}"
_HAN_ROW = f'{_PART_OF_ROW}?(?:[”」》"*]{{0,3}}[、和及与]{_HAN_MARKS}{_PART_OF_ROW}?){{1,7}}'
_HAN_ROW_ENDS = '(?=[”」》"*]{0,3}(?:[。,;:(\\s]|[一二三四五六七八两几][个种级档类项层道]|$))'
_CALLS = (
    "(?:分别|依次)(?:叫作|叫做|称为|称作|名为|[叫称是为])|(?:内部|习惯|私下|大家|都|就|也|常)(?:叫作|叫做|称为|称作|[叫称])[它其]?|"
    "以下简称|下称|简称为?|称之为|称为|称作|统称为?|合称|又称|也称|俗称|别称|所谓|命名为|名为|取名为?|起名为?|代号为?|绰号|外号|昵称|"
    "叫作|叫做|叫它|叫他|唤作"
)
_DEFINITIONS = (
    re.compile(
        f'(?:^|[。;,:\n|(]|[-*+•] ){_HAN_MARKS}(?:所谓)?{_HAN_MARKS}({_HAN}{{2,12}}?)[”」》"*]{{0,3}}+'
        "(?:[,:]?(?:是指|指的是|定义为|的定义是)|[,:]指|即指)",
        re.MULTILINE,
    ),
    re.compile(
        f'(?:{_CALLS}):? ?{_HAN_MARKS}({_HAN_TERM}(?:[”」》"*]{{0,3}}、{_HAN_MARKS}{_HAN_TERM}){{0,7}}){_HAN_ENDS}',
        re.MULTILINE,
    ),
    re.compile(f'[“「《"*]({_HAN}{{2,12}})[”」》"*]{{1,3}}+[,:]?(?:即|是|指)'),
    # several at once: "分为平水、涨水、漫堤三个状态"
    re.compile(f"(?:分为|分成|定为|列为|划为|设为|叫|称):?{_HAN_MARKS}({_HAN_ROW}){_HAN_ROW_ENDS}"),
)
_EXPLAINED = re.compile(
    f'^(?:- |\\d{{1,2}}[.)、] ?){_HAN_MARKS}({_HAN}{{2,7}})[”」》"*]{{0,3}}+ ?:[^。\n]{{2,80}}?的{_HAN}{{1,5}}[。,;]',
    re.MULTILINE,
)
"""A list's label that says what it is: "- 换气日:每学期一次……的日子。"."""

_BETWEEN_HAN = re.compile('[”」》"*]*[、和及与][“「《"*]*')


def defined_in_chinese(text: str) -> Iterator[str]:
    """Yield what a text defines, or says the name of; of several at once, each."""
    for pattern in _DEFINITIONS:
        for match in pattern.finditer(text):
            yield from _BETWEEN_HAN.split(match[1])


def explained_in_chinese(text: str) -> Iterator[str]:
    """Yield the labels of a list's items that say what they are."""
    yield from (match[1] for match in _EXPLAINED.finditer(text))
