"""Files in the messages of an input: before they are read they count by their hashes, afterwards they are text."""

from collections.abc import Iterable, Mapping

from shared.models.messages import Content, Part, TextPart, UserMessage


class UnreadFile(TextPart):
    """The place of a file in a message whose text is put above the message before it is stored or sent."""

    digest: str
    filename: str


class FileMessage(UserMessage):
    """The text of a file that was attached to the message of the user below it."""


def unread_files(content: Content) -> tuple[UnreadFile, ...]:
    """Return the files of a message that are still to be read."""
    return () if isinstance(content, str) else tuple(part for part in content if isinstance(part, UnreadFile))


def check_read(contents: Iterable[Content]) -> None:
    """Check that no message holds the place of a file any more, which a model would read as an empty text.

    Raises:
        ValueError: one does.
    """
    waiting = [file.digest for content in contents for file in unread_files(content)]
    if waiting:
        raise ValueError(f"{len(waiting)} files of the input have not been read")


def without_files(content: Content) -> Content:
    """Return a message without the places of its files."""
    if isinstance(content, str):
        return content
    return tuple(part for part in content if not isinstance(part, UnreadFile))


def with_files(content: Content, texts: Mapping[str, str]) -> Content:
    """Put the texts of files, by their digests, in their places."""
    if isinstance(content, str):
        return content
    return tuple(_read_part(part, texts) for part in content)


def _read_part(part: Part, texts: Mapping[str, str]) -> Part:
    return TextPart(text=texts[part.digest]) if isinstance(part, UnreadFile) else part
