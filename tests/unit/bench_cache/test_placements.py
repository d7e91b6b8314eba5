"""Project files that stay where they stood are read from the cache; those that move are read anew in each turn."""

import random

from tests.bench.cache.measuring import Share
from tests.bench.cache.placements import PlacementShare, missed_placements, placement_shares, render_placements
from tests.bench.cache.simulators import SIMULATORS


def test_anchored_reaches_its_bar_and_classic_does_not():
    shares = placement_shares(random.SystemRandom().randrange(10**9))

    assert missed_placements(shares) == []
    for simulator in SIMULATORS:
        assert shares[simulator, "classic"].share.value < 0.9 < shares[simulator, "anchored"].share.value
        assert shares[simulator, "classic"].unread > 2 * shares[simulator, "anchored"].unread
    assert len(render_placements(shares).splitlines()) == 1 + len(shares)


def test_a_missed_bar_of_a_placement_is_told():
    low = PlacementShare(Share(97, 100), 0.5)

    assert len(missed_placements({("block", "anchored"): low, ("block", "classic"): low})) == 1
