"""The pre-screen: refuse queries that restricted access never answers, before anything is retrieved or charged.

A refusal here saves a search and a model call, and tells attackers less. A query that is missed is still checked by
the gate, so a miss costs little, while a false alarm costs a useful answer. The directory `pre_screen_patterns` has a
file of patterns for each language.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.models.safe_summary import PolicyRefusal
from shared.plain_text.normal_form import normal_form

MAX_CHARACTERS = 20_000
"""Only the end of a longer text is read, because the question is usually at its end."""

_SIMPLIFIED = str.maketrans(
    "義幾標題錄節編碼檔數據東麼為這個們說請問誰員單價額閾費權導調試讀寫條規則約輸轉譯縮術語總結構頁倒繞過濾護漏隱藏禁觸發斷應經負責審簽廠聯嗎"
    "釋闡講舉夥歐鎊鐘給與從時間屬煩複風險進議優難點訓誤區礙賴緊夠滯後脫賠虧樣捨頓紛",
    "义几标题录节编码档数据东么为这个们说请问谁员单价额阈费权导调试读写条规则约输转译缩术语总结构页倒绕过滤护漏隐藏禁触发断应经负责审签厂联吗"
    "释阐讲举伙欧镑钟给与从时间属烦复风险进议优难点训误区碍赖紧够滞后脱赔亏样舍顿纷",
)
"""Maps the traditional forms of those characters that occur in the patterns to the simplified ones."""

_PATTERN_FILES = Path(__file__).with_name("pre_screen_patterns")
_FRAGMENT = re.compile(r"([A-Z]+) = (.+)")
_SECTION = re.compile(r"\[(\w+)( unless useful)?\]")
_USEFUL = "USEFUL"
_NOTHING = re.compile(r"(?!)")


@dataclass(slots=True)
class _Section:
    """The patterns of one refusal; those in `guarded` count only where no <USEFUL> pattern matches."""

    plain: list[str]
    guarded: list[str]


@dataclass(frozen=True, slots=True)
class _RefusalPatterns:
    """A policy refusal, and the patterns of the queries in one language that get it."""

    refusal: PolicyRefusal
    plain: re.Pattern[str]
    guarded: re.Pattern[str]
    useful: re.Pattern[str]

    def match(self, text: str) -> bool:
        """Whether a text in normal form gets this refusal."""
        if self.plain.search(text):
            return True
        return self.guarded.search(text) is not None and not self.useful.search(text)


def pre_screen(last_message: str, query: str) -> PolicyRefusal | None:
    """Return the refusal that the user's last message or the main model's query gets, or None."""
    texts = [normal_form(text[-MAX_CHARACTERS:]).translate(_SIMPLIFIED) for text in (last_message, query)]
    return next((patterns.refusal for patterns in _PATTERNS_IN_ORDER for text in texts if patterns.match(text)), None)


def read_patterns(lines: str) -> Iterator[_RefusalPatterns]:
    """Read a file of patterns; its first lines describe the format.

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
        yield _RefusalPatterns(refusal, _any_of(found.plain), _any_of(found.guarded), useful)


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
"""Of several refusals that match, the first in this order is returned."""

_PATTERNS_IN_ORDER = tuple(
    sorted(
        (
            patterns
            for file in sorted(_PATTERN_FILES.glob("*.txt"))
            for patterns in read_patterns(file.read_text(encoding="utf-8"))
        ),
        key=lambda patterns: _ORDER.index(patterns.refusal),
    )
)
