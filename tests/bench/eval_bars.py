"""The bars of `make eval-retrieval`: which figure each is about, and whether it is reached."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tests.bench.eval_meaning import FUSION, WORDS, Share
from tests.bench.eval_sets import CHOSEN_ON, HELD_OUT, LANGUAGES, TO_CHINESE, TO_ENGLISH, own_set_name

_Figure = Callable[[Share], float]


class Bar(NamedTuple):
    """What one figure, over all questions of some sets, must be: at least `bound`, or below it."""

    name: str
    sets: Sequence[str]
    way: str
    figure: _Figure
    bound: float
    is_minimum: bool = True


def _hit_at_1(share: Share) -> float:
    return share.hit_at_1


def _hit_at_3(share: Share) -> float:
    return share.hit_at_3


BARS = (
    Bar("Chinese passages beside the handbook, hit@1", (CHOSEN_ON, HELD_OUT), FUSION, _hit_at_1, 0.965),
    Bar("translated questions, hit@3", (TO_ENGLISH, TO_CHINESE), FUSION, _hit_at_3, 0.75),
    Bar(
        "translated questions by words alone, hit@3", (TO_ENGLISH, TO_CHINESE), WORDS, _hit_at_3, 0.2, is_minimum=False
    ),
    *(
        Bar(f"{name}, hit@1", (name,), FUSION, _hit_at_1, 0.95)
        for name in (own_set_name(language, "both") for language in LANGUAGES)
    ),
    *(
        Bar(f"{name}, hit@1", (name,), FUSION, _hit_at_1, 0.65)
        for name in (own_set_name("en", "zh"), own_set_name("zh", "en"))
    ),
)


class Judgement(NamedTuple):
    """A line of the report, and whether it counts as reached."""

    line: str
    is_reached: bool


def judged(database: str, shares: Sequence[Share], *, has_all_vectors: bool) -> Iterator[Judgement]:
    """Yield a judgement of each bar; nothing counts as reached by meaning while chunks have no vector."""
    for bar in BARS:
        some = [share for share in shares if share.set_name in bar.sets and share.way == bar.way]
        figure = sum(bar.figure(share) * share.questions for share in some) / sum(share.questions for share in some)
        is_good = figure >= bar.bound if bar.is_minimum else figure < bar.bound
        is_measured = has_all_vectors or bar.way == WORDS
        verdict = ("reached" if is_good else "NOT reached") if is_measured else "not all chunks embedded"
        relation = "at least" if bar.is_minimum else "below"
        yield Judgement(
            f"{database:<12}{bar.name}: {figure:.3f}, {relation} {bar.bound}: {verdict}", is_measured and is_good
        )
