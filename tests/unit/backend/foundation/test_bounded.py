"""A memory of what was used last forgets the rest."""

from backend.foundation.domain.bounded import Bounded


def test_what_was_not_used_for_the_longest_time_makes_room() -> None:
    bounded: Bounded[int, int] = Bounded(most=3)
    for name in range(4):
        bounded.put(name, name)
        bounded.find(0)
    assert (len(bounded), bounded.find(0), bounded.find(1), bounded.find(3)) == (3, 0, None, 3)
