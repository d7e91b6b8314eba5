"""The fixed words around an agent's instructions and project files, where they stand as messages of the user.

Every sentence is declarative: an instruction in a message that the user did not write looks like an attack.
"""

INSTRUCTIONS_REPLACED = "The following custom instructions replace all that earlier messages gave:"
INSTRUCTIONS_GONE = "The custom instructions of earlier messages no longer apply."
FILES_REPLACED = "The following project files replace all that earlier messages showed:"
FILES_GONE = "The project files of earlier messages are no longer part of this conversation."

INSTRUCTIONS_STAND = "The custom instructions further above in this conversation still apply."
FILES_STAND = "The project files further above in this conversation are still part of it."
BOTH_STAND = "The custom instructions and the project files further above in this conversation still apply."

TOOL_RESULT_ELIDED = "[The result of this call was left out; the same call gives it again.]"
"""Stands in the place of a tool's result; the call and its arguments stay."""
