"""The pre-screen: refuses what is plainly asked for in vain, before anything is retrieved or charged.

It saves a search and a model call, and tells attackers less; what gets past it meets the gate. So a miss costs
little, and a false alarm costs a useful answer. The patterns stand in `asks/`, a file for each language.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.models.safe_summary import PolicyRefusal
from shared.plain_text.normal_form import normal_form

MAX_CHARACTERS = 20_000
"""Of each text the end is read: what is asked stands last."""

_SIMPLIFIED = str.maketrans(
    "義幾標題錄節編碼檔數據東麼為這個們說請問誰員單價額閾費權導調試讀寫條規則約輸轉譯縮術語總結構頁倒繞過濾護漏隱藏禁觸發斷應經負責審簽廠聯嗎"
    "釋闡講舉夥歐鎊鐘給與從時間屬煩複風險進議優難點訓誤區礙賴緊夠滯後脫賠虧樣捨頓紛",
    "义几标题录节编码档数据东么为这个们说请问谁员单价额阈费权导调试读写条规则约输转译缩术语总结构页倒绕过滤护漏隐藏禁触发断应经负责审签厂联吗"
    "释阐讲举伙欧镑钟给与从时间属烦复风险进议优难点训误区碍赖紧够滞后脱赔亏样舍顿纷",
)
"""The traditional forms of characters that the patterns hold."""

_ASKS = Path(__file__).with_name("asks")
_FRAGMENT = re.compile(r"([A-Z]+) = (.+)")
_SECTION = re.compile(r"\[(\w+)( unless useful)?\]")
_USEFUL = "USEFUL"
_NOTHING = re.compile(r"(?!)")


@dataclass(slots=True)
class _Section:
    """Patterns that mean one refusal; those in `guarded` only where nothing useful is asked for."""

    plain: list[str]
    guarded: list[str]


@dataclass(frozen=True, slots=True)
class _Ask:
    """A refusal and how one asks for it in one language."""

    refusal: PolicyRefusal
    plain: re.Pattern[str]
    guarded: re.Pattern[str]
    useful: re.Pattern[str]

    def is_in(self, text: str) -> bool:
        """Whether a text in normal form asks for it."""
        if self.plain.search(text):
            return True
        return self.guarded.search(text) is not None and not self.useful.search(text)


def pre_screen(last_message: str, query: str) -> PolicyRefusal | None:
    """Return why a search is refused from the words alone: the user's last message, and the main model's query."""
    texts = [normal_form(text[-MAX_CHARACTERS:]).translate(_SIMPLIFIED) for text in (last_message, query)]
    return next((ask.refusal for ask in _SORTED_ASKS for text in texts if ask.is_in(text)), None)


def read_asks(lines: str) -> Iterator[_Ask]:
    """Read a file of patterns.

    Raises:
        ValueError: a section names no policy refusal.
    """
    fragments: dict[str, str] = {}
    sections: dict[PolicyRefusal, _Section] = {}
    current: list[str] = []
    for line in filter(None, lines.splitlines()):
        if line.startswith("#"):
            continue
        if section := _SECTION.fullmatch(line):
            found = sections.setdefault(PolicyRefusal(section[1]), _Section([], []))
            current = found.guarded if section[2] else found.plain
        elif fragment := _FRAGMENT.fullmatch(line):
            fragments[fragment[1]] = fragment[2]
        else:
            current.append(_filled(line, fragments))
    useful = re.compile(fragments[_USEFUL])
    for refusal, found in sections.items():
        yield _Ask(refusal, _any_of(found.plain), _any_of(found.guarded), useful)


def _filled(pattern: str, fragments: Mapping[str, str]) -> str:
    return re.sub(r"<([A-Z]+)>", lambda name: fragments[name[1]], pattern)


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in patterns)) if patterns else _NOTHING


_ORDER = (
    PolicyRefusal.INJECTION_SUSPECTED,
    PolicyRefusal.ENCODING,
    PolicyRefusal.POLICY_PROBE,
    PolicyRefusal.STRUCTURE,
    PolicyRefusal.VERBATIM,
    PolicyRefusal.DEFINITION,
    PolicyRefusal.ENUMERATION,
    PolicyRefusal.EXACT_VALUE,
    PolicyRefusal.KNOWLEDGE_BASE_QUESTION,
    PolicyRefusal.OUT_OF_SCOPE,
)
"""Where several fit, the first is named: how something is asked for tells more than what."""

_SORTED_ASKS = tuple(
    sorted(
        (ask for file in sorted(_ASKS.glob("*.txt")) for ask in read_asks(file.read_text(encoding="utf-8"))),
        key=lambda ask: _ORDER.index(ask.refusal),
    )
)
