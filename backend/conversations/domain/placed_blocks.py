"""Texts of an agent and files of a turn, with their places in the prompt.

The order is: custom instructions, project files, the files that were uploaded with the message, the dynamic context,
the message. All of them are messages of the user.
"""

import hashlib
import unicodedata
from typing import Literal

from shared.models.messages import Content
from shared.models.values import Value

Placement = Literal["anchored", "classic"]
"""Under `anchored` the blocks of an agent stay in the log where they first stood, and only changes are appended. Under
`classic` they stand in no log, but before the newest message of the user in each turn, and the results of earlier
turns' tools are left out."""

ANCHORED: Placement = "anchored"
CLASSIC: Placement = "classic"

DIGEST_BYTES = 12
"""96 bits; two texts of one conversation that are taken for equal by chance are out of the question."""


class AgentRef(Value):
    """The agent whose words a block holds; an agent that is made anew under an old name has another id."""

    name: str
    id: str


class BlockMark(Value):
    """What an entry of the log states of a block: the digest of its text, "" where it no longer applies."""

    digest: str
    agent: AgentRef | None = None


class PlacedBlocks(Value):
    """The texts of an agent's instructions and project files, and the uploads of one turn, one message each.

    `system_prompt` replaces the operator's default where it is not None; the instructions then stand in the system
    message, and `instructions` is empty. `reminder` is the agent's part of reminders.
    """

    instructions: str = ""
    project_files: str = ""
    files: tuple[Content, ...] = ()
    placement: Placement = ANCHORED
    agent: AgentRef | None = None
    system_prompt: str | None = None
    reminder: str = ""


NO_BLOCKS = PlacedBlocks()


def words_digest(text: str) -> str:
    """Return the digest of a text by which a change of white space is none; "" for a blank text."""
    words = unicodedata.normalize("NFC", text).split()
    return text_digest(" ".join(words)) if words else ""


def text_digest(text: str) -> str:
    """Return the digest of all bytes of a text; "" for a blank one."""
    if not text or text.isspace():
        return ""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()
