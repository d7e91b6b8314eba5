"""The router in front of cells: its table, and that its parts fit together."""

import re
from typing import Any

import orjson
import pytest

from backend.cells.domain import with_routes
from backend.identity.domain import key_beginning
from shared.ids import IdPrefix, cell_of, name_cell, new_id
from tests.unit.deploy.manifests import KUSTOMIZE

COMPONENT = KUSTOMIZE / "components" / "router"


def read(name: str) -> Any:
    return orjson.loads((COMPONENT / name).read_bytes())


def matcher() -> Any:
    return read("routes.json")["resources"][0]["virtual_hosts"][0]["matcher"]


def cell_behind(on_match: Any) -> str:
    return on_match["action"]["typed_config"]["route"]["cluster"]


def by_key(document: Any, key: str) -> str | None:
    tree = document["resources"][0]["virtual_hosts"][0]["matcher"]["matcher_tree"]["prefix_match_map"]["map"]
    found = [beginning for beginning in tree if f"Bearer {key}".startswith(beginning)]
    return cell_behind(tree[max(found, key=len)]) if found else None


def by_path(path: str) -> str:
    rest = matcher()["on_no_match"]["matcher"]
    for each in rest["matcher_list"]["matchers"]:
        pattern = each["predicate"]["single_predicate"]["value_match"]["safe_regex"]["regex"]
        if re.fullmatch(pattern, path):
            return cell_behind(each["on_match"])
    return cell_behind(rest["on_no_match"])


@pytest.fixture
def key_id() -> Any:
    name_cell("c1")
    yield new_id(IdPrefix.API_KEY)
    name_cell("")


def test_each_cell_that_is_routed_to_is_a_cluster() -> None:
    clusters = {each["name"] for each in read("envoy.json")["static_resources"]["clusters"]}
    routed = set(re.findall(r'"cluster":"(\w+)"', orjson.dumps(read("routes.json")).decode()))
    assert routed == clusters == {"c1", "c2"}


def test_nothing_ends_a_stream_but_its_end() -> None:
    routes = re.findall(r'"route":({.*?"timeout":"\w+")', orjson.dumps(read("routes.json")).decode())
    assert len(routes) == 4
    assert all(route.endswith('"timeout":"0s"') for route in routes)


def test_a_key_is_routed_by_its_cell_until_its_tenant_has_moved(key_id: str) -> None:
    document = read("routes.json")
    key = key_beginning(key_id) + "secret"
    assert by_key(document, key) == "c1"
    assert by_key(with_routes(document, [key_beginning(key_id)], "c2"), key) == "c2"
    other = key.replace(key[14:18], "zzzz")
    assert by_key(document, other) == "c1"
    assert by_key(with_routes(document, [key_beginning(key_id)], "c1"), key) == "c1"
    assert by_key(document, "sk-ballast-old") is None


@pytest.mark.parametrize("kind", [IdPrefix.RESPONSE, IdPrefix.CONVERSATION, IdPrefix.KNOWLEDGE_BASE, IdPrefix.AGENT])
@pytest.mark.parametrize("cell", ["", "c1", "c2"])
def test_a_request_without_a_key_of_ours_is_routed_by_the_id_in_its_path(kind: IdPrefix, cell: str) -> None:
    name_cell(cell)
    identifier = new_id(kind)
    name_cell("")
    assert cell_of(identifier) == cell
    for path in (f"/v1/things/{identifier}", f"/v1/things/{identifier}/parts?limit=2"):
        assert by_path(path) == (cell or "c1")


@pytest.mark.parametrize("path", ["/", "/v1/responses", "/v1/models?of=resp_c2", "/v1/conversations/conv_c2"])
def test_all_else_goes_to_the_first_cell(path: str) -> None:
    assert by_path(path) == "c1"


def test_the_pods_read_the_files_where_they_are_mounted() -> None:
    connections = read("envoy.json")["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0][
        "typed_config"
    ]
    source = connections["rds"]["config_source"]["path_config_source"]
    deployment = (COMPONENT / "router.yaml").read_text(encoding="utf-8")
    assert f"mountPath: {source['watched_directory']['path']}," in deployment
    assert source["path"] == f"{source['watched_directory']['path']}/routes.json"
