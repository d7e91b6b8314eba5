"""Tools of the operator's MCP servers: their lists, their calls, and what is let through of both."""
