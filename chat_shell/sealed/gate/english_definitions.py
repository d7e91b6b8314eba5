"""How English documents define a term or say its name.

Blanks are taken possessively and stretches bounded: whoever writes documents must not be able to make a search of them
take for ever.
"""

import re
from collections.abc import Iterator

_MARKS = r"[\"“‘*_`]{0,3}+"
_NO_TERM = "the|an?|to|for|by|in|on|at|off|out|up|it|this|that|if|when"
_TERM = rf"{_MARKS}((?!(?:{_NO_TERM})\b)[A-Za-z][\w'-]*+(?: [A-Za-z][\w'-]*+){{0,2}}?)"
_BEHIND_TERM = (
    "if|when|where|while|is|are|was|were|has|have|had|takes?|for|which|that|who|and|or|means?|in|on|to|at|from|of|by|"
    "with|because|as|the|an?"
)
_TERM_ENDS = rf"[\"”’*_`]{{0,3}}+(?=[.,;:!?()\[\]—\n|\d]|$| [(–—-]| (?:{_BEHIND_TERM})\b)"
_ARTICLE = r"(?:(?:the|an?) )?"
_CALLERS = (
    "is|are|was|were|be|been|it|this|that|these|them|we|they|staff|people|everyone|so|what we|often|also|now|simply|"
    "internally|locally|here"
)
_CALLS = "call(?:s|ed)?|named|nicknamed|dubbed|termed|labelled|labeled"
_DEFINITIONS = (
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
        rf"\b(?:(?:{_CALLERS}) (?:{_CALLS})(?: (?:it|them|this))?|known (?:[a-z]{{1,12}} ){{0,3}}as|spoken of as|"
        r"speaks? of|referred to (?:\w+ly )?as|goes by the name of|counts as|nicknames? it|code-?named|"
        r"here(?:in)?after|so-called|under the (?:code )?name(?: of)?|"
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


def defined_in_english(text: str) -> Iterator[str]:
    """Yield what a text defines, or says the name of."""
    yield from (match[1] for pattern in _DEFINITIONS for match in pattern.finditer(text))


def named_by_kind(text: str) -> Iterator[str]:
    """Yield names behind their kinds."""
    yield from (match[1] for pattern in _KINDS for match in pattern.finditer(text))
