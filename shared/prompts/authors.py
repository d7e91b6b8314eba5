"""The mark by which a model reads who wrote a message, in a conversation that several people use.

No text that a user gives can hold the mark: whatever begins like it is escaped, in every conversation, because one that
has a single user today may have others tomorrow.
"""

import re
from html import escape, unescape

from shared.models.messages import Content, Part, TextPart, texts_in
from shared.prompts.attached_files import is_attached_file

_TAG = "message_from"
_MARK = re.compile(rf"\A<{_TAG}>([^<>\n]*)</{_TAG}>(?:\n\n|\Z)")

_IGNORED = r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
_UNSEEN = rf"[\s{_IGNORED}\ufe00-\ufe0f\ufeff]*"
_ANGLES = "<\ufe64\uff1c"


def _alike(letter: str) -> str:
    """Return a pattern for a letter in either case and width, and for any sign between words."""
    if letter == "_":
        return r"[_\uff3f\-\uff0d]?"
    wide = chr(ord(letter) + 0xFEE0)
    return f"[{letter}{letter.upper()}{wide}{chr(ord(wide) - 0x20)}]"


_BEGIN = f"[{_ANGLES}](?={_UNSEEN}[/\uff0f]?{_UNSEEN}"
_PRETENDED = re.compile(f"{_BEGIN}{_UNSEEN.join(map(_alike, _TAG))})")
_BROKEN_OFF = re.compile(
    f"{_BEGIN}(?:{'|'.join(_UNSEEN.join(map(_alike, _TAG[:end])) for end in range(len(_TAG)))}){_UNSEEN}\\Z)"
)
"""What another part of the message could complete to a mark."""


def without_marks(content: Content) -> Content:
    """Return what a user gave with `&lt;` in the places where it would begin a mark, or something that reads alike."""
    if isinstance(content, str):
        return _PRETENDED.sub("&lt;", content)
    return tuple(_without_marks(part) for part in content)


def _without_marks(part: Part) -> Part:
    if not isinstance(part, TextPart):
        return part
    return part.model_copy(update={"text": _BROKEN_OFF.sub("&lt;", _PRETENDED.sub("&lt;", part.text))})


def with_author(content: Content, author: str) -> Content:
    """Return a message without marks with that of its author before it: before its text, or as a first part."""
    mark = f"<{_TAG}>{escape(author)}</{_TAG}>"
    if isinstance(content, str):
        return f"{mark}\n\n{content}"
    return (TextPart(text=mark), *content)


def author_of(content: Content) -> str | None:
    """Return who wrote a message, or None where it has no mark."""
    first = content if isinstance(content, str) else next(iter(content), None)
    text = first.text if isinstance(first, TextPart) else first
    found = _MARK.match(text) if isinstance(text, str) else None
    return unescape(found[1]) if found is not None else None


def without_author(text: str) -> str:
    """Return the text of a message without the mark of its author."""
    return _MARK.sub("", text)


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
