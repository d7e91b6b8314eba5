"""`python -m backend.knowledge.documents.child MEDIA_TYPE`: read a file from standard input, print JSON blocks."""

import resource
import sys
from collections.abc import Callable, Mapping, Sequence

from backend.knowledge.documents.docx import read_docx
from backend.knowledge.documents.pdf import read_pdf
from backend.knowledge.documents.separate import ANSWER, READ_TIMEOUT_SECONDS, ReadBlocks, RefusedFile
from backend.knowledge.domain.knowledge import Block
from backend.knowledge.domain.media_types import DOCX, PDF
from shared.errors import InvalidRequest, PayloadTooLarge

MAX_MEMORY_BYTES = 2 * 1024**3

_READERS: Mapping[str, Callable[[bytes], Sequence[Block]]] = {PDF: read_pdf, DOCX: read_docx}


def main(media_type: str) -> None:
    """Read one file and print the answer; a lack of memory or time ends the process without an answer."""
    seconds = int(READ_TIMEOUT_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    answer = _answer(media_type, sys.stdin.buffer.read())
    sys.stdout.buffer.write(ANSWER.dump_json(answer))


def _answer(media_type: str, body: bytes) -> ReadBlocks | RefusedFile:
    try:
        return ReadBlocks(blocks=tuple(_READERS[media_type](body)))
    except PayloadTooLarge as error:
        return RefusedFile(outcome="too_large", message=error.message)
    except InvalidRequest as error:
        return RefusedFile(outcome="invalid", message=error.message)


if __name__ == "__main__":
    main(sys.argv[1])
