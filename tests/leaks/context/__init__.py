"""Restricted turns with agents, files, tools, members, lanes and compactions, played by hostile hands."""
