"""The user's own words in a message, without what the application puts beside them."""

import re

from shared.models.messages import Content, texts_in
from shared.prompts.attached_files import is_attached_file
from shared.prompts.authors import without_author

_TIME_SUFFIX = re.compile(r"\n\n<time>[^<>\n]*</time>\Z")
"""What `with_time_suffix` of `shared/prompts/message_order.py` appends."""


def texts_of_user(content: Content) -> tuple[str, ...]:
    """Return the texts of a user message as they were sent, files among them, without a date suffix and its author."""
    texts = (without_author(_TIME_SUFFIX.sub("", text)) for text in texts_in(content))
    return tuple(text for text in texts if text)


def words_of_user(content: Content) -> tuple[str, ...]:
    """Return the texts that the user wrote, without those of attached files.

    Whoever wrote a file, it is not the user's message: did its words count as their own, a file with the passages of a
    restricted base, or with a dictionary, would let these leave, and a long one would displace what the user did write.
    """
    return tuple(text for text in texts_of_user(content) if not is_attached_file(text))
