"""The services of groups, built over the database."""

from typing import NamedTuple

from backend.foundation.services.parts import Part
from backend.foundation.sql.database import Database
from backend.groups.services import ClaimedGroups, FindOwned, GroupDirectory, GroupNames
from backend.groups.sql.store import SqlGroupStore
from shared.clock import Clock


class GroupPackage(NamedTuple):
    """What the package adds to the process, what names groups among members, and what takes them from tokens."""

    part: Part
    names: GroupNames
    claimed: ClaimedGroups


def build_groups(database: Database, find_owned: FindOwned, clock: Clock) -> GroupPackage:
    """Build the package; `find_owned` knows what a group alone owns."""
    store = SqlGroupStore(database)
    groups, names = GroupDirectory(store, find_owned, clock), GroupNames(store)
    return GroupPackage(Part((groups, names)), names, ClaimedGroups(store, groups))
