"""A memory of what was used last forgets the rest."""

from backend.foundation.domain.bounded import Bounded


def test_what_was_not_used_for_the_longest_time_makes_room() -> None:
    bounded: Bounded[int, int] = Bounded(most=3)
    for name in range(4):
        bounded.put(name, name)
        bounded.find(0)
    assert (len(bounded), bounded.find(0), bounded.find(1), bounded.find(3)) == (3, 0, None, 3)


def test_values_of_unequal_size_are_forgotten_until_the_rest_fits() -> None:
    known = Bounded[str, bytes](10, len)
    known.put("a", b"1234")
    known.put("b", b"1234")
    assert known.find("a") == b"1234"
    known.put("c", b"123456")
    assert known.find("b") is None
    assert known.find("a") == b"1234"
    known.put("a", b"1")
    known.put("d", b"123")
    assert len(known) == 3
    known.put("larger than all", b"12345678901")
    assert len(known) == 0
