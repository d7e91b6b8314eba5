"""The format of a document, as a media type."""

from shared.errors import UnsupportedValue

TEXT = "text/plain"
MARKDOWN = "text/markdown"
HTML = "text/html"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

READABLE = (TEXT, MARKDOWN, HTML, PDF, DOCX)

_BY_HEADER = {
    **{media_type: media_type for media_type in READABLE},
    "text/x-markdown": MARKDOWN,
    "application/xhtml+xml": HTML,
    "text/csv": TEXT,
    "text/tab-separated-values": TEXT,
}
_BY_ENDING = {
    "txt": TEXT,
    "text": TEXT,
    "log": TEXT,
    "csv": TEXT,
    "tsv": TEXT,
    "md": MARKDOWN,
    "markdown": MARKDOWN,
    "htm": HTML,
    "html": HTML,
    "xhtml": HTML,
    "pdf": PDF,
    "docx": DOCX,
}
_UNSPECIFIC = ("", "application/octet-stream", "application/x-www-form-urlencoded", "binary/octet-stream")
"""Types that clients send by default, as curl does for `--data-binary`: they do not name the format."""

_UTF8 = ("", "utf-8", "utf8", "us-ascii", "ascii")


def media_type_of(header: str | None, name: str) -> str:
    """Return one of `READABLE`: by the Content-Type header, or else by the ending of the name.

    Raises:
        UnsupportedValue: neither names a readable format, or the header names another encoding than UTF-8.
    """
    named, _, parameters = (header or "").partition(";")
    media_type = named.strip().lower()
    if media_type in _UNSPECIFIC:
        media_type = _BY_ENDING.get(name.rpartition(".")[2].lower() if "." in name else "", "")
    if media_type not in _BY_HEADER:
        what = f"'{media_type}'" if media_type else f"the type of '{name}'"
        raise UnsupportedValue(f"Cannot read {what}: use text, Markdown, HTML, PDF or DOCX.", param="Content-Type")
    if _charset(parameters) not in _UTF8:
        raise UnsupportedValue("Text must be encoded as UTF-8.", param="Content-Type")
    return _BY_HEADER[media_type]


def _charset(parameters: str) -> str:
    pairs = (parameter.partition("=") for parameter in parameters.lower().split(";"))
    return next((value.strip(" \"'") for key, _, value in pairs if key.strip() == "charset"), "")
