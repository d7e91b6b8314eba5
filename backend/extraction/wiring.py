"""What reads documents, with the operator's engine for pictures."""

from contextlib import AsyncExitStack

from backend.extraction.domain.pictures import OcrEngine, OcrOptions
from backend.extraction.formats.reader import LibraryDocumentReader
from backend.extraction.ports import PictureReader


def build_reader(options: OcrOptions, model: PictureReader | None, stack: AsyncExitStack) -> LibraryDocumentReader:
    """Build the reader, with the vision model or with the engine on this machine; its processes end with the stack.

    Raises:
        ValueError: the engine is to run on this machine and is not installed.
    """
    engine = _local_engine(stack) if options.engine is OcrEngine.LOCAL else model
    reader = LibraryDocumentReader(engine=engine, picture_time=options.time)
    stack.push_async_callback(reader.close)
    return reader


def _local_engine(stack: AsyncExitStack) -> PictureReader:
    from backend.extraction.ocr.engine import LocalPictureReader, is_installed

    if not is_installed():
        raise ValueError("local needs the packages of requirements/local-ocr.txt: run `make setup-ocr`")
    local = LocalPictureReader()
    stack.push_async_callback(local.close)
    return local
