"""The files of the page: read once, compressed once, and sent with headers that let nothing else into the page."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response

from backend.foundation.http.page_headers import SECURITY_HEADERS

STATIC = Path(__file__).resolve().parents[1] / "static"
PAGE = "index.html"
MEDIA_TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
ASK_EACH_TIME = "no-cache"
KEPT_A_YEAR = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class PageFile:
    """A file as it is sent; `version` is a digest of its bytes."""

    name: str
    body: bytes
    compressed: bytes
    version: str

    def answer(self, asked: Headers, version: str | None) -> Response:
        """Return the file, or 304 where the browser has it.

        A client that asks for this version may keep it for ever. A replica of another release has other bytes, which
        it sends all the same, so that an upgrade leaves nobody before an empty page.
        """
        etag = f'"{self.version}"'
        headers = {
            **SECURITY_HEADERS,
            "etag": etag,
            "vary": "Accept-Encoding",
            "cache-control": KEPT_A_YEAR if version == self.version else ASK_EACH_TIME,
        }
        if etag in asked.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        body = self.body
        if "gzip" in asked.get("accept-encoding", ""):
            body, headers["content-encoding"] = self.compressed, "gzip"
        return Response(body, headers=headers, media_type=MEDIA_TYPES[Path(self.name).suffix])


def load_page(folder: Path = STATIC, *, signs_in: bool = False) -> dict[str, PageFile]:
    """Read the files of the page by their names; the page itself names the others with their versions.

    `signs_in` is said in the page, which then offers to sign in.
    """
    bodies = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in MEDIA_TYPES}
    files = {name: _page_file(name, body) for name, body in bodies.items() if name != PAGE}
    page = bodies[PAGE]
    for name, file in files.items():
        page = page.replace(f'"console/{name}"'.encode(), f'"console/{name}?v={file.version}"'.encode())
    if signs_in:
        page = page.replace(b'name="sign-in" content="off"', b'name="sign-in" content="on"')
    return {**files, PAGE: _page_file(PAGE, page)}


def _page_file(name: str, body: bytes) -> PageFile:
    version = hashlib.sha256(body).hexdigest()[:16]
    return PageFile(name, body, gzip.compress(body, 9, mtime=0), version)
