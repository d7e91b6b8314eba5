"""`python -m backend.extraction.formats.child MEMORY_BYTES`: cut files that come on standard input, one after another.

What a file makes its reader do is limited by the kernel: memory for the whole process, CPU time for each file. Beyond
the time, or where a library fails to allocate, the process ends; the backend then refuses the file.
"""

import os
import resource
import sys
from collections.abc import Callable
from typing import BinaryIO

from backend.extraction.domain.pictures import PictureAnswer
from backend.extraction.formats.cutting import ContentLimits, cut_file
from backend.extraction.formats.frames import HEAD, Batch, Ended, Job, PictureSent, PieceCount, Refused, as_frame
from backend.extraction.formats.pictures.texts import PictureTexts
from shared.errors import InvalidRequest, PayloadTooLarge

_NICENESS = 5
"""Turns of the backend go before documents."""


def main(memory_bytes: int) -> None:
    """Serve until standard input ends."""
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(HEAD.size):
        job = Job.model_validate_json(source.read(*HEAD.unpack(head)))
        _limit_cpu(job.cpu_seconds + job.drawing_seconds)
        pictures = PictureTexts(_ask(source, target), job.drawing_seconds) if job.drawing_seconds else PictureTexts()
        _answer(job, source.read(job.size_bytes), pictures, target, memory_bytes)
        target.flush()


def _limit_cpu(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + seconds, most))


def _ask(source: BinaryIO, target: BinaryIO) -> Callable[[bytes], PictureAnswer]:
    """Return what has the backend find the text of a picture, and waits for it."""

    def ask(picture: bytes) -> PictureAnswer:
        target.write(as_frame(PictureSent(size_bytes=len(picture))) + picture)
        target.flush()
        return PictureAnswer.model_validate_json(source.read(*HEAD.unpack(source.read(HEAD.size))))

    return ask


def _answer(job: Job, body: bytes, pictures: PictureTexts, target: BinaryIO, memory_bytes: int) -> None:
    limits = ContentLimits(job.blocks, job.text_characters, job.chunks)
    try:
        cut = cut_file(body, job.media_type, limits, job.charset, pictures)
        target.write(
            as_frame(PieceCount(chunk_count=cut.chunk_count, notes=cut.notes, unread_pictures=pictures.unread))
        )
        for pieces in cut.batches:
            target.write(as_frame(Batch(pieces=tuple(pieces))))
        target.write(as_frame(Ended()))
    except PayloadTooLarge as error:
        target.write(as_frame(Refused(outcome="too_large", message=error.message)))
    except InvalidRequest as error:
        target.write(as_frame(Refused(outcome="invalid", message=error.message)))
    except MemoryError:
        said = f"Reading the document takes more than {memory_bytes // 1024**2} MB of memory."
        target.write(as_frame(Refused(outcome="too_large", message=said)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
