"""A tool server as the operator has configured it."""

from pydantic import Field, SecretStr

from shared.models.values import Value

DEFAULT_TIMEOUT_SECONDS = 30.0
DEFAULT_MAX_RESULT_BYTES = 60_000
"""About 15,000 tokens of English prose."""


class WebServer(Value):
    """A server behind an address, over streamable HTTP; `headers` are sent with each request."""

    address: str
    headers: dict[str, SecretStr] = Field(default={})


class LocalServer(Value):
    """A server that is started as a child of this process, over its standard input and output.

    `environment` holds the variables that it gets beside the harmless ones, such as PATH and HOME.
    """

    command: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, SecretStr] = Field(default={})


class ServerEntry(Value):
    """A tool server: how it is reached, and what of it may be used.

    `tools` are the names that the server gives to the tools that are offered; None offers all. `max_result_bytes`
    limits what a model is shown of a result, in bytes of UTF-8.
    """

    name: str
    link: WebServer | LocalServer
    tools: tuple[str, ...] | None = None
    accepts_restricted: bool = False
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    max_result_bytes: int = DEFAULT_MAX_RESULT_BYTES

    def may_call(self, tool: str) -> bool:
        """Return whether the operator lets this tool be called."""
        return self.tools is None or tool in self.tools

    @property
    def max_message_bytes(self) -> int:
        """How much is read of one message of the server.

        JSON may write a byte of text as six, and images that are no text still have to be read to be left out.
        """
        return 6 * self.max_result_bytes + 262_144
