"""What a run has not tried, to be read beside what it has."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product

from tests.leaks.corpus.reading import attacks
from tests.leaks.hostile.stubs import HANG, STUBS
from tests.leaks.sinks import EXCLUDED_PREFIX, EXCLUDED_TABLES
from tests.leaks.trials import Trial

LANGUAGES = ("en", "zh")
WAYS = ("grpc sqlite", "http sqlite", "grpc postgres", "http postgres")
_NAMED = 12
_SINKS = (
    f"the tables {', '.join(sorted(EXCLUDED_TABLES))} and {EXCLUDED_PREFIX}*, which hold the text by design",
    "the answer of retrieval, and the request of the secondary model, which do so too",
    "files of the databases (journals, pages that were freed, the server's log) and the memory of the processes",
    "what passes between backend and chat_shell over gRPC; of HTTP the answer to forged requests alone",
    "traces: the services make none; Valkey: the run keeps its events in memory",
    "time: how long an answer takes, and which of two refusals it was, is not measured here",
)
_ASSUMPTIONS = (
    "budgets, pauses and the circuit are raised: what they would have stopped is tried",
    "a trial is one answer: what many answers together give away is bounded by budgets, and not measured",
    "the reader knows no more than they say; what they have written is their own",
    "a model may still choose among allowed words and sentences, and speak in riddles: no program can tell",
    "names and figures are those that were planted; of other text only passages are looked for",
    "the documents are the project's corpus and, where they are there, the shared corpora: English and Chinese prose",
)


def not_tried(counted: Sequence[Trial]) -> list[str]:
    """Return lines that say which combinations no counted trial has met, which sinks are not read, what is assumed."""
    models = [stub.name for stub in (*STUBS, HANG)]
    classes = list(dict.fromkeys(case.attack_class for case in attacks()))
    return [
        "not tried",
        *_lines("secondary model", models, counted, lambda trial: trial.stub.name),
        *_lines("attack class", classes, counted, lambda trial: trial.attack_class),
        *_pairs(models, classes, counted),
        "  sinks that are not scanned",
        *(f"    {line}" for line in _SINKS),
        "  assumptions",
        *(f"    {line}" for line in _ASSUMPTIONS),
    ]


def _lines(what: str, names: Iterable[str], counted: Iterable[Trial], name_of: Callable[[Trial], str]) -> Iterable[str]:
    tried = {(name_of(one), str(one.language), f"{one.way.protocol} {one.way.database}") for one in counted}
    cells = list(product(names, LANGUAGES, WAYS))
    missing = [cell for cell in cells if cell not in tried]
    yield f"  {what} x language x protocol and database: {len(missing)} of {len(cells)} without a trial"
    by_name = Counter(name for name, _, _ in missing)
    most = len(LANGUAGES) * len(WAYS)
    for name, count in by_name.most_common(_NAMED):
        places = ", ".join(f"{language} {way}" for cell, language, way in missing if cell == name)
        yield f"    {name}: {'nowhere' if count == most else places}"
    if len(by_name) > _NAMED:
        yield f"    and {len(by_name) - _NAMED} more"


def _pairs(models: Sequence[str], classes: Sequence[str], counted: Iterable[Trial]) -> Iterable[str]:
    tried = {(trial.stub.name, trial.attack_class) for trial in counted}
    missing = len(models) * len(classes) - len(tried)
    yield f"  secondary model x attack class: {missing} of {len(models) * len(classes)} without a trial"
