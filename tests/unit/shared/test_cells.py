"""What ids and keys of a cell look like, and how a router reads them."""

from collections.abc import Iterator

import pytest

from backend.identity.domain import KEY_PREFIX, Caller, KeyRole
from backend.identity.services import KeyAdministration, KnownKeys
from backend.openai_api.domain.client_left import create_unstored_id, is_unstored_of
from backend.settings import Settings
from shared.environment import WrongSetting, read_settings
from shared.ids import IdPrefix, cell_of, name_cell, new_id
from tests.fakes.clock import FakeClock
from tests.fakes.store_api_keys import FakeApiKeyStore
from tests.fakes.store_state import StoreState

NEEDED = {"BACKEND_SECRET": "a-secret-of-the-tests", "SERVICE_TOKEN": "a-token-of-the-tests"}


@pytest.fixture(params=["", "c7"])
def cell(request: pytest.FixtureRequest) -> Iterator[str]:
    name_cell(request.param)
    yield request.param
    name_cell("")


@pytest.mark.parametrize("prefix", list(IdPrefix))
def test_an_id_carries_its_cell_behind_its_prefix(cell: str, prefix: IdPrefix) -> None:
    drawn = new_id(prefix)
    assert drawn.startswith(f"{prefix}_{cell}")
    assert cell_of(drawn) == cell
    assert len(drawn) == len(prefix) + 1 + len(cell) + 32


def test_ids_of_files_carry_it_too(cell: str) -> None:
    assert cell_of(new_id(IdPrefix.FILE, separator="-")) == cell


@pytest.mark.parametrize("foreign", ["", "resp_", "resp_c7", "conv-of-a-client", "shelf_user_ann", "resp_" + "0" * 33])
def test_what_has_another_form_is_of_the_first_cell(foreign: str) -> None:
    assert cell_of(foreign) == ""


def test_the_owner_of_an_unstored_turn_is_known_in_each_cell(cell: str) -> None:
    ann, bob = (Caller(user_id=name, tenant="acme", role=KeyRole.USER) for name in ("ann", "bob"))
    drawn = create_unstored_id("a secret", ann)
    assert is_unstored_of("a secret", ann, drawn)
    assert not is_unstored_of("a secret", bob, drawn)
    assert not is_unstored_of("a secret", ann, new_id(IdPrefix.RESPONSE))
    assert not is_unstored_of("a secret", ann, "")


async def test_a_key_begins_with_its_cell_and_a_part_of_its_id(cell: str) -> None:
    clock = FakeClock()
    keys = KeyAdministration(FakeApiKeyStore(StoreState()), clock, KnownKeys(clock))
    key, secret = await keys.issue("ann", KeyRole.USER)
    handle = f"{key.id.removeprefix('key_')[:18]}-" if cell else ""
    assert secret.startswith(f"{KEY_PREFIX}{handle}")
    assert len(secret) == len(KEY_PREFIX) + len(handle) + 43
    assert cell_of(key.id) == cell


@pytest.mark.parametrize("name", ["c", "c12", "C1", "c-", "é1"])
def test_a_cell_is_named_by_two_characters(name: str) -> None:
    with pytest.raises(WrongSetting, match="BACKEND_CELL"):
        read_settings(Settings, NEEDED | {"BACKEND_CELL": name})


def test_a_backend_needs_no_cell() -> None:
    assert read_settings(Settings, NEEDED).cell == ""
    assert read_settings(Settings, NEEDED | {"BACKEND_CELL": "7b"}).cell == "7b"
