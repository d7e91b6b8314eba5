"""The fixed words about agents that a model reads. They stand behind an agent's instructions, wherever these stand."""

from collections.abc import Mapping
from typing import Literal

KnowledgeMode = Literal["strict", "relaxed"]

STRICT_KNOWLEDGE = """\
Questions are answered from the knowledge bases in scope and from nothing else. Search them before every answer that \
states facts, and rest each statement on what a search has returned. Where they hold no answer, or none is in scope, \
say that the knowledge bases do not answer the question, and do not answer it from general knowledge. Greetings, \
questions about this conversation, and work on text that the user has given need no search."""

KNOWLEDGE_MODES: Mapping[KnowledgeMode, str] = {"strict": STRICT_KNOWLEDGE, "relaxed": ""}
"""What a mode adds to the instructions of an agent; a relaxed one may also answer from what its model knows."""
