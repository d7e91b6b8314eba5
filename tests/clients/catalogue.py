"""The foreign clients that are tried: where their programs and locks are, and which packages they stand for."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).resolve().parent
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class ForeignClient:
    """A client with an environment of its own; `folder` holds its lock, its page's program and its flows.

    `packages` are those whose versions the table names, the client itself first. `language` tells whose packages they
    are. Programs of a library run in its environment; a command is on the path of programs that the tests' own Python
    runs; a server is a command that its flows start with the very program of its page.
    """

    folder: str
    title: str
    packages: tuple[str, ...]
    language: Literal["python", "node"] = "python"
    use: Literal["library", "command", "server"] = "library"

    @property
    def directory(self) -> Path:
        """Where its lock and programs are."""
        return HERE / self.folder

    @property
    def lock(self) -> Path:
        """The file that names every version with its hash."""
        return self.directory / ("requirements.txt" if self.language == "python" else "package-lock.json")

    @property
    def program_suffix(self) -> str:
        """How the names of its flows' programs end."""
        return ".mjs" if self.language == "node" and self.use == "library" else ".py"

    @property
    def quickstart(self) -> Path:
        """The program that its page in `docs/clients` shows."""
        return self.directory / f"quickstart{self.program_suffix if self.use == 'library' else '.sh'}"

    @property
    def page_name(self) -> str:
        """The name of its page in `docs/clients`."""
        return f"{self.folder.replace('_', '-')}.md"

    def programs(self) -> list[Path]:
        """Return the programs that are run: its page's, unless the flows start it, then its flows' by their names."""
        flows = sorted(self.directory.glob(f"flows*{self.program_suffix}"))
        return flows if self.use == "server" else [self.quickstart, *flows]

    def versions(self) -> dict[str, str]:
        """Return the locked versions of `packages`."""
        text = self.lock.read_text(encoding="utf-8")
        if self.language == "python":
            pinned = dict(_PIN.findall(text))
        else:
            locked = json.loads(text)["packages"]
            pinned = {name.removeprefix("node_modules/"): entry.get("version", "") for name, entry in locked.items()}
        return {name: pinned[name] for name in self.packages}


CLIENTS = (
    ForeignClient("openai_python", "OpenAI for Python", ("openai",)),
    ForeignClient("openai_agents", "OpenAI Agents SDK", ("openai-agents", "openai")),
    ForeignClient("langchain", "LangChain", ("langchain-openai", "langchain", "openai")),
    ForeignClient(
        "llama_index", "LlamaIndex", ("llama-index-llms-openai", "llama-index-llms-openai-like", "llama-index-core")
    ),
    ForeignClient("pydantic_ai", "Pydantic AI", ("pydantic-ai-slim", "openai")),
    ForeignClient("litellm", "LiteLLM", ("litellm", "openai")),
    ForeignClient("langgraph", "LangGraph", ("langgraph", "langchain", "langchain-openai")),
    ForeignClient("ag2", "AG2", ("ag2", "openai")),
    ForeignClient("autogen", "AutoGen", ("autogen-agentchat", "autogen-ext", "openai")),
    ForeignClient("semantic_kernel", "Semantic Kernel", ("semantic-kernel", "openai")),
    ForeignClient("crewai", "CrewAI", ("crewai", "openai")),
    ForeignClient("instructor", "Instructor", ("instructor", "openai")),
    ForeignClient("haystack", "Haystack", ("haystack-ai", "openai")),
    ForeignClient("dspy", "DSPy", ("dspy", "litellm")),
    ForeignClient("mcp_client", "MCP client", ("mcp",)),
    ForeignClient("openai_node", "OpenAI for Node", ("openai",), "node"),
    ForeignClient("ai_sdk", "Vercel AI SDK", ("@ai-sdk/openai", "ai"), "node"),
    ForeignClient("langchain_js", "LangChain for JavaScript", ("@langchain/openai", "@langchain/core"), "node"),
    ForeignClient("codex", "Codex CLI", ("@openai/codex",), "node", "command"),
    ForeignClient("opencode", "opencode", ("opencode-linux-x64",), "node", "command"),
    ForeignClient("aider", "aider", ("aider-chat", "litellm"), use="command"),
    ForeignClient("llm_cli", "llm", ("llm", "openai"), use="command"),
    ForeignClient("open_webui", "Open WebUI", ("open-webui",), use="server"),
)
