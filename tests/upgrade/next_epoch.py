"""Run with the last release's code before this one on the path: plan the next turn behind log rows of this release.

Rows come as JSON on standard input. What goes to standard output is the row of the turn's first entry, as that release
writes it, and the length of the system message that it sends.
"""

import sys
from datetime import datetime
from importlib import import_module
from typing import Any

import orjson

from backend.conversations.domain.conversation_log import Entry, EntryKind
from backend.conversations.domain.responses import Conversation, ConversationSettings
from backend.conversations.sql.codec import entry_parameters, to_entries
from shared.models.execution import AccessMode
from shared.models.messages import UserMessage

EPOCHS: Any = import_module("backend.conversations.domain.epochs")
"""It stands elsewhere in this release."""


def main() -> None:
    """Plan the turn and print what is stored of it."""
    rows = [{**row, "created_at": datetime.fromisoformat(row["created_at"])} for row in orjson.loads(sys.stdin.read())]
    log = to_entries("conv_1", rows)
    settings = ConversationSettings(model="demo-model", instructions="", functions=(), knowledge_base_ids=())
    conversation = Conversation.model_construct(None, **dict(settings), epoch=log[-1].epoch)
    epoch = EPOCHS.plan_epoch(
        conversation, log, settings, EPOCHS.CallerAccess(mode=AccessMode.FULL, withheld=(), modes={})
    )
    # That release takes the version where this one takes the whole reset.
    system_prompt = settings.system_prompt(epoch.reset.template_version)
    entry = Entry(
        position=len(log),
        epoch=epoch.number,
        turn_id="turn_of_the_release_before",
        kind=EntryKind.USER,
        message=UserMessage(content="Go on."),
        created_at=log[-1].created_at,
        reset=epoch.reset if epoch.starts else None,
    )
    (row,) = entry_parameters("conv_1", [entry])
    sys.stdout.buffer.write(orjson.dumps({"row": row, "system_characters": len(system_prompt)}))


if __name__ == "__main__":
    main()
