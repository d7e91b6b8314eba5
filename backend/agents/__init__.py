"""Agents: models with instructions, knowledge and tools under a name of their own."""
