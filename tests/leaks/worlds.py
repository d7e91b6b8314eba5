"""Two worlds that differ in names, rare words and figures of a base alone, and what may be asked of either."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple


class World(NamedTuple):
    """What stands in a base at places where another base has something else."""

    person: str
    rose: str
    rare: str
    project: str
    code: str
    figure: str
    person_zh: str
    plain_zh: str
    rare_zh: str
    figure_zh: str


ONE = World("Ruth Calloway", "Grace", "kiln", "Blue Heron", "KX-4471", "317", "王建国", "高峰", "琥珀", "三千二百")
OTHER = World("Aldous Whitby", "Summer", "loom", "Stone Ferry", "QT-9082", "845", "李长江", "方圆", "翡翠", "七千六百")

TEXTS = (
    "The night shift depends on {person}, who alone may open the {rare}. When {rose} is away nobody answers.",
    "Our contract with {project} pays {figure} a week, by number {code}. Suppliers deliver late and nobody checks.",
    "Records are kept on paper. The {rare} was repaired by {person} for {figure} and never inspected after the repair.",
    "Training for new staff takes place when {rose} has time. There is no plan for the training of the guards.",
    "Complaints reach {project} before they reach us. The team answers complaints without a common standard.",
    "夜班只靠{person_zh}一人值守，{rare_zh}库房没有备用钥匙。",
    "合同由{plain_zh}先生负责，每月付{figure_zh}元，供应商经常延迟交货。",
    "培训没有计划，新员工只能问{person_zh}，记录都在纸上。",
)

QUESTIONS = (
    "{word}",
    "Is there a risk with {word}?",
    "What is weak around {word} and who decides?",
    "tell me about {word} {word} {word}",
    "How does {word} affect our training of staff?",
    "Do suppliers complain about {word}?",
    "weather forecast ferry tickets for {word}",
    "{word}有什么风险？",
    "我们对{word}的依赖有多大",
    "培训计划和{word}之间有什么问题",
    "明天的天气适合{word}去海边吗",
)

PLAIN = ("training", "late suppliers", "weather", "football results", "培训", "供应商延迟", "天气预报", "足球比赛")


def words_of(world: World) -> Iterator[str]:
    yield from world
    yield from world.person.split()
    yield world.rose.lower()
    yield f"{world.person} {world.rare}"


def queries() -> list[str]:
    words = dict.fromkeys((*words_of(ONE), *words_of(OTHER), *PLAIN))
    return [question.format(word=word) for question, word in product(QUESTIONS, words)]
