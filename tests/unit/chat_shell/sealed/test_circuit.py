"""The circuit opens at its limit within an hour, for one model."""

from chat_shell.sealed.summary_writer import CanaryCircuit
from tests.fakes.clock import FakeClock


def test_hits_of_one_hour_count_together():
    clock = FakeClock()
    circuit = CanaryCircuit(2, clock.now)
    circuit.record_hit("a")
    assert not circuit.is_open("a")
    clock.advance(3599)
    circuit.record_hit("a")
    assert circuit.is_open("a")
    assert not circuit.is_open("b")
    clock.advance(1)
    assert not circuit.is_open("a")


def test_what_the_backend_has_on_record_counts():
    circuit = CanaryCircuit(2, FakeClock().now)
    assert not circuit.is_open("a", 1)
    assert circuit.is_open("a", 2)
