"""A result that is too long, from the tool to the log and into every later request."""

from pathlib import Path

import orjson
import pytest

from shared.prompts.tool_results import documents_left_out
from shared.tokens import estimate_tokens
from tests.e2e.pair import PairOptions, start_pair
from tests.e2e.prefixes import check_never_moves
from tests.e2e.turns import bare_client, file_search, new_base, search, tool_results, turn
from tests.fakes.model_server import Reply
from tests.servers.services import Launch

pytestmark = pytest.mark.combination

LIMIT_TOKENS = 600


async def test_documents_that_do_not_fit_are_left_out_for_good(launch: Launch, tmp_path: Path) -> None:
    options = PairOptions(chat_shell={"CHAT_SHELL_MAX_TOOL_RESULT_TOKENS": str(LIMIT_TOKENS)})
    pair = start_pair(launch, tmp_path, options)
    stories = {f"fox{place}": f"The fox number {place} is red. " * 30 for place in range(6)}
    async with pair.control() as model, bare_client(pair, "loop") as client:
        await model.script(
            Reply(tool_calls=(search("red fox", "call_1"),)), Reply(text=("Red [1].",)), Reply(text=("Bye.",))
        )
        base_id = await new_base(client, "Farm", **stories)
        first = await turn(client, "Who is red?", tools=[file_search(base_id)], include=["file_search_call.results"])
        await turn(client, "Thanks.", previous_response_id=first["id"])
        requests = await model.requests()
    (cut,) = tool_results(requests[1])
    shown, _, notice = cut["content"].partition("\n\n")
    documents = orjson.loads(shown)["documents"]
    assert 0 < len(documents) < len(stories)
    assert notice == documents_left_out(len(documents), len(stories))
    assert estimate_tokens(cut["content"]) <= LIMIT_TOKENS
    assert tool_results(requests[2]) == [cut]
    check_never_moves(requests)
    assert len(first["output"][0]["results"]) == len(documents)
