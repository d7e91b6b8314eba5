"""Groups in tokens: read, written through once, and none brought back by an older token."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from backend.groups.domain import ClaimedSet, Group
from backend.groups.services import ClaimedGroups, GroupDirectory
from backend.identity.domain import ClaimNames, TokenTrust
from backend.identity.tokens.verifier import JwtVerifier, ProviderKeys
from shared.errors import Unauthenticated
from tests.fakes.clock import FakeClock
from tests.fakes.identity_provider import AUDIENCE, ISSUER, IdentityProvider
from tests.fakes.store_groups import FakeGroupStore


class Writes(FakeGroupStore):
    """Counts how often the claims of tokens are written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    async def set_claimed(self, tenant: str, user_id: str, names: Mapping[str, Group], said: ClaimedSet) -> None:
        self.writes += 1
        await super().set_claimed(tenant, user_id, names, said)


class Desk:
    """Reads tokens of one provider into a store of groups."""

    def __init__(self, claim: str = "realm.groups", store: Writes | None = None) -> None:
        clock = FakeClock()
        self.provider, self.store = IdentityProvider(), store or Writes()
        self.now = int(datetime.now(UTC).timestamp())
        trust = TokenTrust(
            issuer=ISSUER,
            audiences=(AUDIENCE,),
            key_set_url="https://keys.example",
            algorithms=("RS256",),
            claims=ClaimNames(groups=claim),
        )
        claimed = ClaimedGroups(self.store, GroupDirectory(self.store, _owns_nothing, clock))
        self.verifier = JwtVerifier(ProviderKeys(self.provider.fetch, clock), trust, claimed.note)

    async def show(self, groups: object, ago: int | None = 0) -> list[str]:
        """Show a token issued so long ago; return the names of ada's groups."""
        realm = None if groups is None else {"groups": groups}
        issued_at = self.now - ago if ago is not None else None
        await self.verifier.caller(self.provider.token(iat=issued_at, realm=realm))
        found = await self.store.find("default", await self.store.groups_of("default", "ada"))
        return sorted(group.name for group in found.values())


async def _owns_nothing(_tenant: str, _member: str) -> tuple[str, ...]:
    return ()


async def test_names_with_slashes_are_names() -> None:
    assert await Desk().show(["/a/b", "c"]) == ["/a/b", "c"]


async def test_one_name_may_stand_alone() -> None:
    assert await Desk().show("/a/b c") == ["/a/b c"]


async def test_the_same_token_is_written_once_and_a_newer_one_again() -> None:
    desk = Desk()
    for ago, writes in ((9, 1), (9, 1), (5, 2), (9, 2), (5, 2)):
        assert await desk.show(["a"], ago) == ["a"]
        assert desk.store.writes == writes


async def test_an_older_token_brings_nothing_back() -> None:
    desk = Desk()
    assert await desk.show(["a", "b"], 9) == ["a", "b"]
    assert await desk.show(["b"], 5) == ["b"]
    assert await desk.show(["a", "b"], 9) == ["b"]
    # A process that has seen nothing of it yet asks the store.
    other = Desk(store=desk.store)
    assert await other.show(["a", "b"], 9) == ["b"]


async def test_a_token_without_the_claim_says_that_there_are_none() -> None:
    desk = Desk()
    assert await desk.show(["a"], 9) == ["a"]
    assert await desk.show(None, 5) == []


@pytest.mark.parametrize(
    "groups", [["a", 1], [""], [" a"], ["a\n"], ["x" * 257], {"a": 1}, 7, [f"g{n}" for n in range(1_001)]]
)
async def test_what_is_no_list_of_names_is_refused(groups: object) -> None:
    with pytest.raises(Unauthenticated, match=r"realm\.groups"):
        await Desk().show(groups)


async def test_a_token_with_groups_says_when_it_was_issued() -> None:
    with pytest.raises(Unauthenticated, match="iat"):
        await Desk().show(["a"], None)


async def test_a_thousand_groups_of_a_token() -> None:
    names = sorted(f"/departments/number-{number}" for number in range(1_000))
    assert await Desk().show(names) == names


async def test_without_the_setting_nothing_is_read() -> None:
    desk = Desk(claim="")
    assert await desk.show({"not": "names"}) == []
    assert desk.store.writes == 0
