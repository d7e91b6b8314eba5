"""Write `shared/disclosure/lists/taiwanese.txt` anew; run by hand when OpenCC has a new edition.

    PYTHONPATH=. python requirements/taiwanese_words.py

The source is the Python package opencc 1.4, which has to be installed. No word is added or removed by hand.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from opencc import OpenCC

_LIST = Path(__file__).resolve().parents[1] / "shared" / "disclosure" / "lists" / "taiwanese.txt"
_WORD, _OTHER = re.compile("[\u4e00-\u9fff]{2,4}"), re.compile("[\u4e00-\u9fff]{1,4}")


def main() -> None:
    """Write each word of Taiwan with the first of the mainland's for it, where they differ in simplified characters."""
    simplified = OpenCC("t2s").convert
    found = {simplified(word): simplified(other) for word, other in _pairs() if simplified(word) != simplified(other)}
    pairs = (
        (word, other) for word, other in sorted(found.items()) if _WORD.fullmatch(word) and _OTHER.fullmatch(other)
    )
    _LIST.write_text("".join(f"{word}\t{other}\n" for word, other in pairs), encoding="utf-8")


def _pairs() -> Iterator[tuple[str, str]]:
    """Yield the pairs of OpenCC's dictionary, which its own tool turns into text."""
    package = files("opencc") / "clib"
    with tempfile.NamedTemporaryFile() as target:
        source = str(package / "share" / "opencc" / "TWPhrasesRev.ocd2")
        tool = [str(package / "bin" / "opencc_dict"), "-i", source, "-o", target.name, "-f", "ocd2", "-t", "text"]
        subprocess.run(tool, check=True)
        for line in Path(target.name).read_text(encoding="utf-8").splitlines():
            word, _, others = line.partition("\t")
            yield word, others.split()[0]


if __name__ == "__main__":
    main()
