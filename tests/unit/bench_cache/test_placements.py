"""Project files that stay where they stood are read from the cache; those that move are read anew in each turn."""

import random

from tests.bench.cache.measuring import Share
from tests.bench.cache.placements import (
    PlacementShare,
    ReminderShare,
    missed_placements,
    missed_reminders,
    placement_shares,
    reminder_shares,
    render_placements,
    render_reminders,
)
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


def test_a_reminder_costs_little_before_a_provider_that_finds_prefixes_at_breakpoints_only():
    shares = reminder_shares(random.SystemRandom().randrange(10**9))

    assert missed_reminders(shares) == []
    assert shares["classic"].share.value < shares["anchored"].share.value
    assert len(render_reminders(shares).splitlines()) == 1 + len(shares)


def test_a_missed_bar_of_a_reminder_is_told():
    low, dear = ReminderShare(Share(94, 100), 0.2), ReminderShare(Share(81, 100), 0.41)

    assert len(missed_reminders({"anchored": low, "classic": dear})) == 2
