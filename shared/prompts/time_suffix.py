"""The date suffix: the only place where a prompt learns what time it is."""

from datetime import datetime
from zoneinfo import ZoneInfo

from shared.models.messages import Content, TextPart


def with_time_suffix(content: Content, sent_at: datetime, time_zone: str) -> Content:
    """Append the suffix to a user message: to its text, or as one last text part where it has parts.

    Raises:
        zoneinfo.ZoneInfoNotFoundError: `time_zone` is no IANA name.
    """
    local = sent_at.astimezone(ZoneInfo(time_zone))
    suffix = f"\n\n<time>{local:%Y-%m-%d %H:%M} {time_zone}</time>"
    if isinstance(content, str):
        return content + suffix
    return (*content, TextPart(text=suffix))
