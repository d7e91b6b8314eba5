"""The tool by which a model reads a file of the user that is not shown whole; its definition is constant."""

from shared.models.execution import ToolDefinition

READ_FILE = "read_file"

READ_FILE_TOOL = ToolDefinition(
    name=READ_FILE,
    description=(
        "Read a file that the user attached to a message of this conversation and that is not shown whole there, one "
        "page at a time. The result is numbered like the documents of a knowledge base and is cited in the same way; "
        "its next_offset is where the next page begins, null at the end."
    ),
    parameters={
        "type": "object",
        "properties": {
            "file_id": {
                "type": "string",
                "description": "The file_id of the file, as it stands in the message.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "The character at which the page begins; 0 is the beginning of the file.",
            },
        },
        "required": ["file_id"],
        "additionalProperties": False,
    },
    strict=None,
)
