"""The oracle's own normal form of a text, and its words."""

import re
import unicodedata
from functools import lru_cache

CJK = "\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
_IDEOGRAPH = re.compile(rf"[{CJK}]")
# letters of other scripts that look like Latin ones, and other forms of common Chinese characters
_LOOKALIKES = (
    str.maketrans("аеорсухіѕјԁһԛԝвмнтк", "aeopcyxisjdhqwbmhtk")
    | str.maketrans("ακορτυνιηχεωβϲϳ", "akoptuvinxewbcj")
    | str.maketrans("ցոսհօզաԼ", "gnuhoqwl")
    | str.maketrans(
        "個們這來時會對發經過還沒說國長種開間東車門問見業務產書電場員報實機關專價規則組織資質貨單證"
        "標準檢驗測試記錄處罰違約責任補償訴級別數據",
        "个们这来时会对发经过还没说国长种开间东车门问见业务产书电场员报实机关专价规则组织资质货单证"
        "标准检验测试记录处罚违约责任补偿诉级别数据",
    )
    | str.maketrans("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz")
)
_DROPPED = frozenset({"Cf", "Cc", "Co", "Cs", "Cn", "Mn", "Me"})


def folded(text: str) -> str:
    """Return a text in compatible lower-case characters, the invisible ones and accents gone."""
    return visible(text).casefold().translate(_LOOKALIKES) if not text.isascii() else text.lower()


def visible(text: str) -> str:
    """Return a text in compatible characters, any digit as an ASCII one, the invisible ones and accents gone."""
    if text.isascii():
        return text
    return "".join(map(_plain, text))


def words(text: str) -> list[str]:
    """Return the words of a text: runs of letters and digits, and each ideograph by itself."""
    return _WORD.findall(folded(text))


def squeezed(text: str) -> str:
    """Return only the letters and digits."""
    return "".join(words(text))


def is_ideograph(word: str) -> bool:
    """Whether a word is one ideograph."""
    return len(word) == 1 and _IDEOGRAPH.match(word) is not None


@lru_cache(maxsize=65536)
def _plain(character: str) -> str:
    if character in "\n\t\r ":
        return character
    if (digit := unicodedata.digit(character, None)) is not None:
        return str(digit)
    decomposed = unicodedata.normalize("NFKD", character)
    return "".join(part for part in decomposed if unicodedata.category(part) not in _DROPPED)
