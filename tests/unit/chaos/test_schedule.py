"""The schedule of a chaos run follows from its seed."""

import pytest

from tests.chaos.schedule import DISK_FAULTS, Fault, FaultKind, every_fault, make_schedule

SEEDS = range(20)
LONG_SECONDS = 600


def test_the_same_seed_gives_the_same_faults():
    assert make_schedule(7, LONG_SECONDS, with_disk=True) == make_schedule(7, LONG_SECONDS, with_disk=True)
    assert make_schedule(7, LONG_SECONDS, with_disk=True) != make_schedule(8, LONG_SECONDS, with_disk=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_faults_are_over_at_the_end_and_no_target_has_two_at_a_time(seed: int):
    schedule = make_schedule(seed, 60, with_disk=True)
    assert schedule == tuple(sorted(schedule))
    assert all(0 < fault.at_seconds <= fault.ends_seconds < 60 for fault in schedule)
    for place, fault in enumerate(schedule):
        others = [other for other in schedule[place + 1 :] if other.target == fault.target]
        assert all(other.at_seconds > fault.ends_seconds for other in others)


def test_a_long_run_tries_everything():
    tried = {
        (fault.kind, fault.target) for seed in (1, 2) for fault in make_schedule(seed, LONG_SECONDS, with_disk=True)
    }
    assert tried == set(every_fault(with_disk=True))


def test_a_machine_without_a_disk_of_its_own_tries_none():
    faults = make_schedule(1, LONG_SECONDS, with_disk=False)
    assert not {fault.kind for fault in faults} & set(DISK_FAULTS)


def test_a_run_without_failovers_has_none():
    faults = make_schedule(1, LONG_SECONDS, with_disk=True, with_failover=False)
    assert FaultKind.FAIL_OVER not in {fault.kind for fault in faults}


def test_every_kind_of_fault_is_dealt():
    assert {kind for kind, _ in every_fault(with_disk=True)} == set(FaultKind)


def test_a_fault_knows_its_end():
    assert Fault(2, 3, FaultKind.KILL, "valkey").ends_seconds == 5
