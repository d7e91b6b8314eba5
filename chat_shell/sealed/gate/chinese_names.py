"""Names of persons, places and things in Chinese text, which has no capitals to show them."""

import re
from collections.abc import Iterable, Iterator

from chat_shell.sealed.gate.chinese import segment, unknown_runs
from chat_shell.sealed.gate.folding import STOP_CHARACTERS
from chat_shell.sealed.gate.word_lists import (
    CHINESE_KINDS,
    FREQUENT_CHARACTERS,
    LONE_CHARACTERS,
    is_chinese_place,
    is_chinese_word,
    is_everyday_chinese,
)

_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范"
    "金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤欧阳康易乔赖文樊施洪辛俞章鲁葛柳翟"
)
_COMPOUND_SURNAMES = (
    "欧阳|司马|司徒|司空|上官|诸葛|东方|公孙|令狐|慕容|夏侯|尉迟|皇甫|长孙|宇文|端木|独孤|南宫|百里|钟离|闻人|公冶|濮阳|轩辕|即墨|赫连|"
    "谷梁|闾丘|太史|申屠|呼延|澹台|拓跋|万俟|淳于|单于|仲孙|完颜|纳兰|耶律|宗政|亓官|东郭|西门|梁丘|左丘|鲜于|第五"
)
_TITLES = (
    "总经理|副总|经理|总监|主任|部长|处长|科长|局长|院长|校长|主管|组长|负责人|工程师|教授|博士|先生|女士|老师|同志|总裁|董事长|"
    "董事|秘书|专员|医生|律师|顾问|会计|助理|管理员"
)
_TITLED = re.compile(
    f"([{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?)(?:{_TITLES})|(?:{_TITLES})(?:为|是|：|:)?([{_SURNAMES}][\u4e00-\u9fff]{{1,2}})"
)
_ACTING = re.compile(
    f"由([{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?)(?:负责|审批|主持|牵头|签|批准|复核|担任|保管|监督|兼任|接任|审核|主管|兼管|代管|把关)"
)
_COMPOUND = re.compile(f"((?:{_COMPOUND_SURNAMES})[\u4e00-\u9fff])([\u4e00-\u9fff])?")
_HAN_STRETCH = re.compile("[\u4e00-\u9fff]+")

_PLACE_ENDINGS = frozenset("巷桥镇村湾岛寺庙苑斋轩阁坊庄堡屯峪洲屿礁滩岭")
_LONGEST_NAME = 3
_SHORTEST_FULL_NAME = 2


def segmented(folded: str) -> list[list[str]]:
    """Return the words of each stretch of Chinese in a folded text."""
    return [segment(stretch) for stretch in _HAN_STRETCH.findall(folded)]


def persons(folded: str, stretches: Iterable[list[str]]) -> Iterator[str]:
    """Yield what a title, a surname of two characters or a lone surname shows to be a person, in a folded text."""
    for match in _TITLED.finditer(folded):
        yield from _person(match[1] or match[2])
    for match in _ACTING.finditer(folded):
        yield from _person(match[1])
    for match in _COMPOUND.finditer(folded):
        yield match[0]
        if match[1][-1] not in STOP_CHARACTERS:
            yield match[1]
    for words in stretches:
        yield from _surnamed(words)


def guessed_names(stretches: Iterable[list[str]]) -> Iterator[str]:
    """Yield places, and stretches that no general word explains.

    One of frequent characters alone is taken for a new word of work, such as 排期: only how such a word is introduced
    can show it to be a name.
    """
    for words in stretches:
        yield from (run for run in unknown_runs(words) if not FREQUENT_CHARACTERS.issuperset(run))
        yield from (word for word in words if is_chinese_place(word) and not is_chinese_word(word))


def named_kinds(stretches: Iterable[list[str]]) -> Iterator[str]:
    """Yield what stands before its kind, such as a bank's name, with it, and general words that end as a place does.

    Of a row of lone characters the last two and three are tried: what stands before them is a verb as often.
    """
    for words in stretches:
        for place, word in enumerate(words[1:], start=1):
            if word in CHINESE_KINDS:
                yield from (name + word for name in _lone_tails(words[:place]))
                if len(name := words[place - 1]) > 1 and (is_chinese_place(name) or not is_everyday_chinese(name)):
                    yield name + word
            elif word in _PLACE_ENDINGS and len(words[place - 1]) > 1:
                yield words[place - 1] + word


def _lone_tails(words: list[str]) -> Iterator[str]:
    row = ""
    for word in reversed(words[-_LONGEST_NAME:]):
        if len(word) > 1 or word in STOP_CHARACTERS:
            break
        row = word + row
        if len(row) > 1:
            yield row


def _person(name: str) -> Iterator[str]:
    """Yield the beginnings of a name of which a title shows that it is one, and its given part where no word is it."""
    for length in range(2, len(name) + 1):
        part = name[:length]
        if not is_everyday_chinese(part) and not STOP_CHARACTERS.intersection(part):
            yield part
    if len(name) > _SHORTEST_FULL_NAME and not is_chinese_word(name[1:]):
        yield name[1:]


def _surnamed(words: list[str]) -> Iterator[str]:
    """Yield a lone surname with the lone characters after it, where they are too few or too many for a run."""
    for place, word in enumerate(words[:-1]):
        given = words[place + 1]
        if word in _SURNAMES and len(given) == 1 and given not in STOP_CHARACTERS and given not in LONE_CHARACTERS:
            yield word + given
