"""What the table says of flows, and when a run breaks what it promises."""

from tests.clients.catalogue import CLIENTS, ForeignClient
from tests.clients.results import FlowResult, broken, summary, table, with_endpoints

ONE, OTHER = CLIENTS[:2]


def result(flow: str, *, is_ok: bool = True, client: ForeignClient = ONE, began_at: float = 0) -> FlowResult:
    return FlowResult(client, "plain", flow, is_ok=is_ok, began_at=began_at)


def test_only_a_failure_that_the_table_does_not_name_breaks_it() -> None:
    page = table([result("a"), result("b", is_ok=False)], {ONE.folder: "1"}, "2026-01-01")
    assert broken([result("a"), result("b", is_ok=False)], page) == []
    assert broken([result("a", is_ok=False)], page) == [result("a", is_ok=False)]
    assert broken([result("b", is_ok=False, client=OTHER)], page) != []


def test_a_request_belongs_to_the_flow_that_ran_when_it_ended() -> None:
    flows = [result("a", began_at=1), result("b", began_at=5, is_ok=False)]
    found = with_endpoints(flows, [(0.5, "GET /before"), (4.9, "GET /v1/a"), (5.1, "GET /v1/b"), (9, "GET /v1/a")])
    assert [flow.endpoints for flow in found] == [{"GET /v1/a"}, {"GET /v1/a", "GET /v1/b"}]
    page = table(found, {ONE.folder: "1"}, "2026-01-01")
    assert "| `GET /v1/a` | 1/2 |" in page
    assert "| `GET /v1/b` | 0/1 |" in page


def test_the_summary_counts_the_kinds_of_each_client() -> None:
    page = table(
        [result("a"), result("b", is_ok=False), result("c", client=OTHER)],
        {ONE.folder: "1", OTHER.folder: "2"},
        "2026-01-01",
    )
    assert "On 2026-01-01, 2 of 3 flows" in summary(page)
    assert (
        f"[{ONE.title}](docs/clients/{ONE.page_name}) 1/2, [{OTHER.title}](docs/clients/{OTHER.page_name}) 1/1."
        in summary(page)
    )
