"""Single tools through both servers of chat_shell: client and server together, on loopback."""

import asyncio
from datetime import UTC, datetime, timedelta

import grpc.aio
import pytest
from fastapi import FastAPI

from shared.errors import ChatShellUnavailable, DeadlineExceeded, InternalError, InvalidRequest, PayloadTooLarge
from shared.models.execution import ServedTool, ToolDefinition
from shared.models.served_tools import OfferedTools, ServerTools, SkillCard
from shared.models.single_tools import SingleToolCall, SingleToolResult
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_runner import SUMMARY, ScriptedRunner, ScriptedTool, saying
from tests.fakes.chat_shell_servers import MAX_BYTES, connected, pair, served, server_address, shell_with

both_servers = pytest.mark.parametrize("transport", ["grpc", "http"])
CALL = SingleToolCall(
    turn=full_request(), tool="knowledge_base_search", arguments={"query": "储备 rules", "knowledge_base_ids": ["kb_1"]}
)


def shell_of(tool: ScriptedTool):
    return shell_with(ScriptedRunner(saying()), tool=tool)


@both_servers
async def test_a_call_arrives_as_it_was_sent_and_so_does_its_result(transport: str):
    refused = SingleToolResult(text="no", failed=True, structured=None)
    tool = ScriptedTool(SUMMARY, refused)
    async with pair(transport, shell_of(tool)) as client:
        assert await client.run_tool(CALL) == SUMMARY
        assert await client.run_tool(CALL) == refused
    assert tool.calls == [CALL, CALL]


@both_servers
async def test_an_error_is_raised_again(transport: str):
    tool = ScriptedTool(InvalidRequest("arguments: are wrong", param="arguments"), ZeroDivisionError("secret"))
    async with pair(transport, shell_of(tool)) as client:
        with pytest.raises(InvalidRequest) as refusal:
            await client.run_tool(CALL)
        assert refusal.value.param == "arguments"
        with pytest.raises(InternalError) as defect:
            await client.run_tool(CALL)
    assert "secret" not in defect.value.message


@both_servers
async def test_a_wrong_service_token_runs_nothing(transport: str):
    tool = ScriptedTool()
    async with server_address(transport, shell_of(tool)) as address, connected(address, "wrong") as client:
        with pytest.raises(InternalError, match="token"):
            await client.run_tool(CALL)
    assert not tool.calls


@both_servers
async def test_a_call_over_the_limit_is_refused(transport: str):
    tool = ScriptedTool()
    async with pair(transport, shell_of(tool)) as client:
        with pytest.raises(PayloadTooLarge):
            await client.run_tool(CALL.model_copy(update={"arguments": {"query": "x" * (MAX_BYTES + 1)}}))
    assert not tool.calls


@both_servers
async def test_a_passed_deadline_runs_nothing(transport: str):
    tool = ScriptedTool()
    late = full_request().model_copy(update={"deadline": datetime.now(UTC) - timedelta(seconds=1)})
    async with pair(transport, shell_of(tool)) as client:
        with pytest.raises(DeadlineExceeded):
            await client.run_tool(CALL.model_copy(update={"turn": late}))
    assert not tool.calls


@both_servers
async def test_a_draining_shell_runs_no_tool(transport: str):
    shell = shell_of(ScriptedTool())
    shell.admission.close()
    async with pair(transport, shell) as client:
        with pytest.raises(ChatShellUnavailable):
            await client.run_tool(CALL)
    assert not shell.tool.calls


@both_servers
async def test_a_call_counts_as_a_running_turn(transport: str):
    tool = ScriptedTool()
    tool.gate.clear()
    shell = shell_of(tool)
    async with pair(transport, shell) as client, asyncio.TaskGroup() as group:
        calling = group.create_task(client.run_tool(CALL))
        await tool.begun.wait()
        assert shell.admission.running == 1
        tool.gate.set()
        assert await calling == SUMMARY
        await shell.admission.wait_until_idle()


async def test_cancelling_the_caller_cancels_the_tool_over_grpc():
    tool = ScriptedTool()
    tool.gate.clear()
    shell = shell_of(tool)
    async with pair("grpc", shell) as client, asyncio.TaskGroup() as group:
        calling = group.create_task(client.run_tool(CALL))
        await tool.begun.wait()
        calling.cancel()
        await tool.closed.wait()
        await shell.admission.wait_until_idle()


async def test_an_earlier_release_behind_grpc_is_said_so():
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with connected(f"grpc://127.0.0.1:{port}") as client:
            with pytest.raises(ChatShellUnavailable, match="earlier release"):
                await client.run_tool(CALL)
    finally:
        await server.stop(0)


async def test_an_earlier_release_behind_http_is_said_so():
    async with served(FastAPI()) as address, connected(address) as client:
        with pytest.raises(ChatShellUnavailable, match="earlier release"):
            await client.run_tool(CALL)


@both_servers
async def test_nobody_there_is_unavailable(transport: str):
    async with server_address(transport, shell_of(ScriptedTool())) as address:
        pass
    async with connected(address) as client:
        with pytest.raises(ChatShellUnavailable, match="cannot be reached"):
            await client.run_tool(CALL)


@both_servers
async def test_what_is_offered_arrives(transport: str):
    tool = ScriptedTool()
    definition = ToolDefinition(name="jira__a", description=None, parameters={"type": "object"}, strict=None)
    served_tool = ServedTool(definition=definition, server="jira", tool="a", accepts_restricted=True)
    jira = ServerTools(server="jira", is_known=True, tools=(served_tool,))
    wiki = ServerTools(server="wiki", is_known=False, tools=())
    skill = SkillCard(name="letters", description="Write.", accepts_restricted=False)
    tool.offers = OfferedTools(servers=(jira, wiki), skills=(skill,))
    async with pair(transport, shell_of(tool)) as client:
        assert await client.tools() == tool.offers
