"""A stand-in for the engine on this machine: what the picture says is what it does."""

import os
import sys
import time

from backend.extraction.domain.pictures import PictureAnswer
from backend.extraction.formats.frames import HEAD, as_frame


def main() -> None:
    """Answer with the id of the process and the picture; `end` ends it, `hang` never answers, `fail` is not read."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    target.write(as_frame(PictureAnswer()))
    target.flush()
    while head := source.read(HEAD.size):
        said = source.read(*HEAD.unpack(head)).decode()
        if said == "end":
            return
        if said == "hang":
            time.sleep(3600)
        answer = PictureAnswer(failure="no") if said == "fail" else PictureAnswer(text=f"{os.getpid()} {said}")
        target.write(as_frame(answer))
        target.flush()


if __name__ == "__main__":
    main()
