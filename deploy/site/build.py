"""Build the documentation into `var/site`; `make docs` runs this.

The pages keep the places that they have in the repository, so that their links hold on the site as they do elsewhere.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backend.foundation.http.app import create_app
from backend.foundation.http.services import HttpOptions
from backend.routes import ROUTERS
from deploy.site.pages import CONFIGURATION, REFERENCE, list_written_pages
from deploy.site.reference import reference_pages

ROOT = Path(__file__).resolve().parents[2]
_SOURCE, _SITE = ROOT / "var" / "site-source", ROOT / "var" / "site"
_GENERATOR = ROOT / "var" / "docs-environment" / "bin" / "zensical"
# what a browser fetches by itself; a link that a reader may follow is none of it
_FETCHED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\ssrc="?([^"\s>]+)|<link\b[^>]*\shref="?([^"\s>]+)""")


class WrongSite(RuntimeError):
    """The site that was built is not what it has to be."""


def main() -> None:
    """Lay out the pages, run the generator, and look at what it has made."""
    shutil.rmtree(_SOURCE, ignore_errors=True)
    lay_out(_SOURCE / "pages")
    shutil.copy(CONFIGURATION, _SOURCE)
    done = subprocess.run([str(_GENERATOR), "build", "--clean", "--strict"], cwd=_SOURCE, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    built = _SOURCE / "site"
    foreign = sorted(set(find_fetched_from_elsewhere(built)))
    if foreign:
        raise WrongSite(f"pages fetch from elsewhere: {', '.join(foreign)}")
    shutil.rmtree(_SITE, ignore_errors=True)
    built.rename(_SITE)
    pages = len(list(_SITE.rglob("*.html")))
    print(f"{pages} pages. To read and search them: python3 -m http.server --bind 127.0.0.1 --directory var/site 8080")


def lay_out(folder: Path) -> None:
    """Put all pages, and what they show, into a folder; the API reference is written from the OpenAPI document."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(CONFIGURATION.with_name("site.css"), folder)
    for name in list_written_pages():
        if "/" not in name:
            shutil.copy(ROOT / name, folder)
    (folder / REFERENCE).mkdir()
    for name, text in reference_pages(api_document()).items():
        (folder / REFERENCE / name).write_text(text, encoding="utf-8")


def api_document() -> dict[str, Any]:
    """Return the OpenAPI document of the backend, which needs nothing that runs."""
    return create_app(ROUTERS, (), HttpOptions(service_token="")).openapi()


def find_fetched_from_elsewhere(site: Path) -> Iterator[str]:
    """Return the addresses on other hosts from which pages would fetch something."""
    for page in site.rglob("*.html"):
        for source, link in _FETCHED.findall(page.read_text(encoding="utf-8")):
            if "//" in source + link:
                yield source + link


if __name__ == "__main__":
    main()
