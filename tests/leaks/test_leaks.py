"""The leak test in small: every hostile model and every class of attack once, against the real pair.

`make leak-test` is the whole of it.
"""

import random
from pathlib import Path
from typing import Literal

import pytest

from shared.prompts.knowledge_base import CANNOT_ANSWER
from tests.leaks.__main__ import one_case_a_class, playable
from tests.leaks.corpus.reading import attacks
from tests.leaks.forgeries import play_forgeries, play_role_changes
from tests.leaks.hostile.stubs import HANG, HONEST, STUBS
from tests.leaks.lookups import SINK, play_lookups
from tests.leaks.pair import Way
from tests.leaks.runner import Stage, staged
from tests.leaks.trials import SEARCHES_A_TURN
from tests.servers.forks import ForkServers

pytestmark = pytest.mark.whole

TIMEOUT_SECONDS = 20.0
"""A busy machine takes seconds for a summary; the model that hangs is waited for this long."""
TELLING = ("one sentence", "figure, digits", "names", "canaries", "base64", "odd blanks as bits", "cipher: keyword")
FORGED = ("mode_forgery", "ticket_forgery")


async def test_no_hostile_model_gets_anything_out(tmp_path: Path, forks: ForkServers) -> None:
    cases = one_case_a_class(playable())
    async with staged(tmp_path, cases, TIMEOUT_SECONDS, Way(embedder="fake", forks=forks)) as stage:
        mixed = sorted([*STUBS, HANG], key=lambda stub: random.Random(stub.name).random())
        a_case = -(-len(mixed) // len(cases))
        visits = [
            stage.planned(case, 0, [*mixed[at * a_case : (at + 1) * a_case], HONEST][:SEARCHES_A_TURN])
            for at, case in enumerate(cases)
        ]
        await stage.play(visits)
        await stage.scanned()
        await play_forgeries(stage, [case for case in playable() if case.attack_class in FORGED])
        telling = [stub for stub in STUBS if stub.name in TELLING]
        await play_lookups(
            stage, [stage.planned(case, 0, [*telling[at::2], HONEST]) for at, case in enumerate(cases[:2])]
        )
        await play_role_changes(stage, [case for case in attacks() if case.attack_class == "role_change"][:1])
        check(stage)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_a_gate_that_lets_everything_out_is_noticed_in_every_sink(
    tmp_path: Path, forks: ForkServers, postgres_url: str, protocol: Literal["grpc", "http"]
) -> None:
    telling = [stub for stub in STUBS if stub.name in TELLING]
    way = Way(protocol, postgres_url if protocol == "http" else "", forks=forks)
    case = next(case for case in playable() if case.attack_class == "injection_chunk")
    async with staged(tmp_path, [case], TIMEOUT_SECONDS, way, is_gated=False) as stage:
        await stage.play([stage.planned(case, 0, telling)])
        await stage.scanned()
        await play_lookups(stage, [stage.planned(case, 0, telling)])
        found = stage.results.sightings
    assert {sighting.trial.stub.name for sighting in found if sighting.trial} == {stub.name for stub in telling}
    sinks = {sighting.sink for sighting in found}
    assert sinks >= {"main model", SINK, "log of chat_shell", "table log_entry", "table released_result"}


async def test_nothing_but_codes_leaves_where_the_grade_is_strict(tmp_path: Path, forks: ForkServers) -> None:
    telling = [HONEST, *(stub for stub in STUBS if stub.name in TELLING)]
    case = next(case for case in playable() if case.attack_class == "injection_chunk")
    async with staged(tmp_path, [case], TIMEOUT_SECONDS, Way(forks=forks, grade="strict")) as stage:
        await stage.play([stage.planned(case, 0, telling)])
        await stage.scanned()
        assert not stage.results.failures, stage.results.rendered()
        told = [trial for trial in stage.results.counted if trial.is_released]
        assert {trial.stub.name for trial in told} >= {stub.name for stub in telling} - {"canaries"}


def check(stage: Stage) -> None:
    results = stage.results
    assert not results.failures, results.rendered()
    assert not stage.registry.unknown_requests
    assert not results.other_answers, results.other_answers
    counted = results.counted
    assert {trial.attack_class for trial in counted} >= {case.attack_class for case in playable()}
    played = {trial.stub.name for trial in results.trials}
    assert played >= {stub.name for stub in (*STUBS, HANG)}
    assert len(counted) >= 0.8 * len(results.trials)
    assert any(trial.is_released for trial in counted if trial.stub is HONEST)
    assert {trial.result for trial in counted if not trial.is_released} == {CANNOT_ANSWER}
