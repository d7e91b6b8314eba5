"""How many words of documents are found, kind by kind, beside other readers: `make eval-documents`.

    python -m tests.bench.eval_documents [FOLDER …]
    python -m tests.bench.eval_documents --encodings
    python -m tests.bench.eval_documents --scans

Without folders the test files of public projects are fetched with git into `var/eval-documents`. The other readers live
in environments of their own there. Each reads its files in one process, which tells words and CPU seconds. The words
wanted of a file are those that the other reader of its kind finds, but for its own marks. Words with digits are left
out of sheets, where one reader shows a number as it is stored and the other as it is seen. A file that ends the process
of a reader counts as not read, and what only has the name of its kind is left out. A word that one reader parts and the
other joins, as at a line's end or in a formula, is found. Nothing of the files is kept here.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from zipfile import is_zipfile

from tests.bench.eval_encodings import print_encodings
from tests.bench.eval_scans import print_scans

PLACE = Path("var/eval-documents")
SOURCES = (
    "https://github.com/py-pdf/sample-files",
    "https://github.com/python-openxml/python-docx",
    "https://github.com/scanny/python-pptx",
    "https://github.com/microsoft/markitdown",
)
OTHERS = {
    ".pdf": "pypdfium2",
    ".docx": "markitdown",
    ".pptx": "markitdown",
    ".xlsx": "markitdown",
    ".html": "markitdown",
}
"""By kind the reader whose words are wanted."""

PACKAGES = {"pypdfium2": "pypdfium2", "markitdown": "markitdown[docx,pptx,xlsx]"}
LOST = 0.05
MAX_FILE_BYTES = 20_000_000
_SECONDS_A_READER = 3600

_WORDS = r"""
import json, re, resource, sys, unicodedata
from collections import Counter
from pathlib import Path

MEMORY_BYTES = 4 * 1024**3
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")

def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

def tell(read):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for line in sys.stdin:
        path = Path(line.rstrip("\n"))
        before = cpu()
        try:
            text, notes = read(path)
        except Exception as error:
            text, notes = None, [f"{type(error).__name__}: {error}"]
        seconds = cpu() - before
        words = Counter(WORD.findall(unicodedata.normalize("NFKC", text or "").casefold()))
        if path.suffix.lower() == ".xlsx":
            words = {word: count for word, count in words.items() if not any(map(str.isdecimal, word))}
        told = {"path": str(path), "words": words, "seconds": seconds, "notes": notes, "read": text is not None}
        print(json.dumps(told), flush=True)
"""
_READERS = {
    "ballast": """
from backend.extraction.domain.media_types import media_type_of
from backend.extraction.formats.cutting import ContentLimits, cut_file

def read(path):
    body = path.read_bytes()
    cut = cut_file(body, media_type_of(None, path.name, body), ContentLimits())
    parts, above = [], ()
    for batch in cut.batches:
        for headings, text, *_ in batch:
            parts += [*(headings if headings != above else ()), text]
            above = headings
    return "\\n".join(parts), list(cut.notes)
""",
    "pypdfium2": """
import pypdfium2

def read(path):
    document = pypdfium2.PdfDocument(path)
    return "\\n".join(page.get_textpage().get_text_range() for page in document), []
""",
    "markitdown": """
from markitdown import MarkItDown
reader = MarkItDown()
MARKUP = re.compile(
    r"<!--.*?-->|!\\[[^\\]]*\\]\\([^)]*\\)|^### Notes:$|\\[\\[?\\d+\\]?\\]\\(#[^)]*\\)|\\]\\([^)]*\\)"
    r"|</?u>|\\[[x ]\\]|^ *\\d+\\. |\\\\[a-z]+|\\b(?:NaN|nan|NaT)\\b"
    r"|\\bUnnamed: \\d+|\\[unsupported chart\\]|\\bNone\\b|(?<=\\d)\\.0\\b",
    re.MULTILINE | re.DOTALL,
)
EMPHASIS = re.compile(r"(?<=\\w)\\*{2,3}(?=\\w)")

def read(path):
    return MARKUP.sub(" ", EMPHASIS.sub("", reader.convert(str(path)).text_content)), []
""",
}


class Told(NamedTuple):
    """What a reader told of a file."""

    words: Counter[str]
    seconds: float
    notes: Sequence[str]
    read: bool


class Kind(NamedTuple):
    """The files of a kind as our reader and the other one have read them."""

    kind: str
    pairs: Sequence[tuple[Told, Told]]

    def row(self) -> tuple[str, ...]:
        """Return the cells of its row."""
        wanted = sum(other.words.total() for _, other in self.pairs)
        found = sum((ours.words & other.words).total() for ours, other in self.pairs)
        ours_only = sum(ours.words.total() for ours, _ in self.pairs)
        lossy = [ours for ours, other in self.pairs if _loss(ours, other) > LOST]
        reverse = sum((ours.words & other.words).total() for ours, other in self.pairs) / max(1, ours_only)
        return (
            self.kind,
            str(len(self.pairs)),
            f"{found} of {wanted}",
            f"{found / max(1, wanted):.2%}",
            f"{reverse:.2%}",
            str(len(lossy)),
            str(sum(not one.notes for one in lossy)),
            f"{sum(ours.seconds for ours, _ in self.pairs):.1f}",
            f"{sum(other.seconds for _, other in self.pairs):.1f} ({OTHERS[self.kind]})",
        )


HEADINGS = (
    "kind",
    "files",
    "words found of wanted",
    "share",
    "of ours the other finds",
    f"files that lose over {LOST:.0%}",
    "of these without a note",
    "CPU s",
    "CPU s of the other",
)


def main(arguments: Sequence[str]) -> None:
    """Print a row for each kind, or the figures of encodings."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.eval_documents")
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--encodings", action="store_true")
    parser.add_argument("--scans", action="store_true")
    parser.add_argument("--lossy", action="store_true", help="name the files that lose words")
    asked = parser.parse_args(arguments)
    if asked.scans:
        print_scans()
        return
    if asked.encodings:
        print_encodings()
        return
    files = sorted(_files(asked.folders or list(_fetch())))
    ours = _read("ballast", Path(sys.executable), files)
    by_kind: defaultdict[str, list[tuple[Told, Told]]] = defaultdict(list)
    for name in PACKAGES:
        theirs = _read(name, _environment(name), [file for file in files if OTHERS[file.suffix.lower()] == name])
        for path, other in theirs.items():
            if other.read and other.words:
                by_kind[Path(path).suffix.lower()].append((ours[path], other))
                if asked.lossy and _loss(ours[path], other) > LOST:
                    print(f"{_loss(ours[path], other):.0%} lost: {path} {list(ours[path].notes)[:2]}")
    rows = [HEADINGS, *(Kind(kind, pairs).row() for kind, pairs in sorted(by_kind.items()))]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _loss(ours: Told, other: Told) -> float:
    more = ours.words - other.words
    letters = {word: len(word) * count for word, count in more.items()}
    left = sum(not _take(word, letters) for word in (other.words - ours.words).elements())
    return left / max(1, other.words.total())


def _take(word: str, letters: dict[str, int]) -> bool:
    """Take a word from a longer one, or from one of its parts, where these have letters left."""
    for each, count in letters.items():
        shared = min(len(each), len(word))
        if count >= shared and _overlap(each, word):
            letters[each] -= shared
            return True
    return False


def _overlap(one: str, other: str) -> bool:
    return one in other or other in one


def _files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for path in folder.rglob("*"):
            kind = path.suffix.lower()
            is_small = kind in OTHERS and path.is_file() and path.stat().st_size <= MAX_FILE_BYTES
            if is_small and (not kind.endswith("x") or is_zipfile(path)):
                yield path


def _fetch() -> Iterator[Path]:
    """Fetch the public files that are not there yet."""
    for source in SOURCES:
        place = PLACE / "files" / source.rpartition("/")[2]
        if not place.exists():
            subprocess.run(["git", "clone", "--quiet", "--depth=1", source, str(place)], check=False)
        if place.exists():
            yield place


def _environment(name: str) -> Path:
    """Return the Python of an environment that has another reader, made where there is none."""
    python = PLACE / name / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PLACE / name)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PACKAGES[name]], check=True)
    return python


def _read(name: str, python: Path, files: Sequence[Path]) -> dict[str, Told]:
    """Let a reader read all files in one process, and in another one what is left behind a file that ends it."""
    told: dict[str, Told] = {}
    left = [str(file) for file in files]
    while left:
        done = subprocess.run(
            [str(python), "-W", "ignore", "-c", f"{_WORDS}\n{_READERS[name]}\ntell(read)"],
            input="".join(f"{file}\n" for file in left),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
            timeout=_SECONDS_A_READER,
        )
        lines = done.stdout.splitlines()
        for one in map(json.loads, lines):
            told[one["path"]] = Told(Counter(one["words"]), one["seconds"], one["notes"], one["read"])
        if len(lines) < len(left):
            told[left[len(lines)]] = Told(Counter(), 0, ["The process ended at this file."], read=False)
        left = left[len(lines) + 1 :]
    return told


if __name__ == "__main__":
    main(sys.argv[1:])
