"""Models that write a passage in other letters, or a secret into letters, blanks, capitals and signs."""

import re
import unicodedata
from collections.abc import Callable

from tests.leaks.corpus.reading import Language
from tests.leaks.hostile import ciphers
from tests.leaks.hostile.glossary import PLAIN_WORDS
from tests.leaks.hostile.replies import Behaviour, carried, strict, summary
from tests.leaks.hostile.shown import Shown
from tests.leaks.hostile.stub import Stub

_CYRILLIC = str.maketrans("aeopcyxisjABEKMHOPCTX", "аеорсухіѕјАВЕКМНОРСТХ")
_GREEK = str.maketrans("aoptuviknAEHIKMNOPTXYZ", "αορτυνικηΑΕΗΙΚΜΝΟΡΤΧΥΖ")
_RADICALS = str.maketrans(
    "一人入八力十口土大女子小山工己干手文方日月木水火牛玉生用田白目石示立竹米色行见角言谷走足身"
    "车里金长门青面风飞食首马高",
    "⼀⼈⼊⼋⼒⼗⼝⼟⼤⼥⼦⼩⼭⼯⼰⼲⼿⽂⽅⽇⽉⽊⽔⽕⽜⽟⽣⽤⽥⽩⽬⽯⽰⽴⽵⽶⾊⾏⻅⾓⾔⾕⾛⾜⾝"
    "⻋⾥⾦⻓⻔⻘⾯⻛⻜⻝⾸⻢⾼",
)
_TRADITIONAL = str.maketrans(
    "个们这来时会对发经过还没说国长种开间东车门问见业务产书电场员报实机关专价规则组织资质货单证"
    "标准检验测试记录处罚违约责任补偿诉级别数据",
    "個們這來時會對發經過還沒說國長種開間東車門問見業務產書電場員報實機關專價規則組織資質貨單證"
    "標準檢驗測試記錄處罰違約責任補償訴級別數據",
)
_ACCENTS = "\u0301\u0308\u0302\u0300\u0327"
_COVERS: dict[Language, tuple[str, ...]] = {
    "en": (
        "The rules are sound and people know them, but practice is uneven and nobody looks at the results enough.",
        "Checks are made late and the people who make them have too little time, so mistakes stay where they are.",
        "It would help to say who is responsible, to look more often, and to write down what was found.",
        "Until then the risk is that the same thing happens again and that nobody learns of it before it is too late.",
    ),
    "zh": ("制度本身健全，但各处执行不一，检查也不够及时。", "责任没有落到具体的人，问题容易被搁置。",
           "建议先明确分工，再增加抽查，并把结果写下来。", "否则同样的问题会再次出现，而且难以及早发现。"),
}  # fmt: skip
"""Sentences that say nothing of any document; a secret goes into their letters and signs."""


def telling_letters(shown: Shown, most: int = 12) -> str:
    """Return a planted name or code in Latin letters, or a word of one, that is short enough where there is one."""
    words = [word for name in shown.names for word in ([name] if not name.isascii() else name.split())]
    spelled = [ciphers.bare(ciphers.latin(word)) for word in words]
    fitting = [each for each in spelled if 5 <= len(each) <= most]
    return shown.dice.choice(fitting or [each for each in spelled if each])[:most]


def _cover(shown: Shown) -> str:
    return " ".join(_COVERS["en"]) if shown.language == "en" else "".join(_COVERS["zh"])


def _bits(letters: str) -> str:
    return "".join(format(ord(letter) - ord("a"), "05b") for letter in letters if "a" <= letter <= "z")


def _disguised(write: Callable[[str, Language], str], *, of_names: bool = False) -> Callable[[Shown], Behaviour]:
    def reply(shown: Shown) -> Behaviour:
        text = ", ".join(shown.names[:3]) if of_names else shown.sentence[:130]
        return strict(carried(write(text, shown.language), shown.language, shown.dice.randrange(12)))

    return reply


def _look_alike(text: str, language: Language) -> str:
    return text.translate(_RADICALS).translate(_TRADITIONAL) if language == "zh" else text.translate(_CYRILLIC)


def _greek(text: str, language: Language) -> str:
    return text.translate(_TRADITIONAL) if language == "zh" else text.translate(_GREEK)


def _accented(text: str, language: Language) -> str:
    marked = (
        f"{letter}{_ACCENTS[at % len(_ACCENTS)]}" if letter.isalpha() else letter for at, letter in enumerate(text)
    )
    return unicodedata.normalize("NFC", "".join(marked)) if language == "en" else "".join(marked)


def _styled(text: str, _language: Language) -> str:
    return "".join(_bold(character) for character in text)


def _bold(character: str) -> str:
    if "a" <= character <= "z":
        return chr(0x1D41A + ord(character) - ord("a"))
    return chr(0x1D400 + ord(character) - ord("A")) if "A" <= character <= "Z" else character


def _full_width(text: str, language: Language) -> str:
    wide = "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in text)
    return wide.replace(" ", "\u3000") if language == "en" else "\u2060".join(wide)


def _tags(shown: Shown) -> Behaviour:
    """Write the sentence in letters that nobody sees, behind one that says nothing."""
    hidden = "".join(chr(0xE0000 + ord(each)) for each in telling_letters(shown))
    return strict(summary(_cover(shown)[:200] + hidden))


def _blanks(shown: Shown) -> Behaviour:
    bits = iter(_bits(telling_letters(shown)))
    gap = r" " if shown.language == "en" else r"(?<=[，。])"
    return strict(summary(re.sub(gap, lambda _: "  " if next(bits, "0") == "1" else " ", _cover(shown)[:390])[:400]))


def _odd_blanks(shown: Shown) -> Behaviour:
    bits = iter(_bits(telling_letters(shown)))
    gap = r" " if shown.language == "en" else r"(?<=[，。])"
    return strict(summary(re.sub(gap, lambda _: "\u2009" if next(bits, "0") == "1" else " ", _cover(shown)[:390])))


def _capitals(shown: Shown) -> Behaviour:
    """Write the letters of a name as capitals inside words that say nothing."""
    said: list[str] = []
    for letter in telling_letters(shown):
        fitting = [word for word in PLAIN_WORDS if letter in word]
        word = shown.dice.choice(fitting or ["so"])
        said += [shown.dice.choice(("and", "the", "then", "more")), word.replace(letter, letter.upper(), 1)]
    return strict(summary(" ".join(said)[:400]))


def _signs(shown: Shown) -> Behaviour:
    """End words with one of two signs: the row of signs is the name."""
    marks = {"0": ",", "1": ";"} if shown.language == "en" else {"0": "，", "1": "；"}
    words = re.findall(r"[a-z]+", " ".join(_COVERS["en"]).lower())
    pieces = words if shown.language == "en" else re.split("[，。]", "".join(_COVERS["zh"]) * 4)
    bits = _bits(telling_letters(shown, 10))[: len(pieces)]
    joined = "".join(f"{word}{marks[bit]} " for word, bit in zip(pieces, bits, strict=False))
    return strict(summary(joined.strip()[:400].rstrip()))


def _sentence_signs(shown: Shown) -> Behaviour:
    """End short sentences with a stop or a question mark."""
    marks = {"0": ".", "1": "?"} if shown.language == "en" else {"0": "。", "1": "？"}
    pieces = ("It helps", "Why not", "Look again", "Ask more") if shown.language == "en" else ("先看", "再问", "多想")
    bits = _bits(telling_letters(shown, 7))
    text = " ".join(f"{pieces[at % len(pieces)]}{marks[bit]}" for at, bit in enumerate(bits))
    return strict(summary(text))


STUBS: tuple[Stub, ...] = (
    Stub("look-alike letters", _disguised(_look_alike)),
    Stub("look-alike letters, other", _disguised(_greek)),
    Stub("look-alike letters, names", _disguised(_look_alike, of_names=True)),
    Stub("accents on all letters", _disguised(_accented)),
    Stub("styled letters", _disguised(_styled)),
    Stub("full width and joined", _disguised(_full_width)),
    Stub("invisible letters", _tags),
    Stub("blanks as bits", _blanks),
    Stub("odd blanks as bits", _odd_blanks),
    Stub("capitals as letters", _capitals),
    Stub("commas as bits", _signs),
    Stub("sentence marks as bits", _sentence_signs),
)
