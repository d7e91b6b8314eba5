"""`python -m backend.extraction.ocr.child MEMORY_BYTES`: find the text of pictures that come on standard input.

RapidOCR has its models in its wheel: nothing is fetched. Each picture is a JPEG behind its length, and each answer a
frame of a `PictureAnswer`; the first answer says that the models are loaded.
"""

import os
import resource
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from math import atan2, cos, sin
from pathlib import Path
from statistics import median
from typing import Any

from backend.extraction.domain.pictures import PictureAnswer
from backend.extraction.formats.frames import HEAD, as_frame
from backend.extraction.formats.pdf.layout import LinePart, join_segments

# Neither is installed with the backend: the types are those of nothing.
cv2: Any = import_module("cv2")
rapidocr: Any = import_module("rapidocr")

Corner = tuple[float, float]
Box = Sequence[Corner]
"""The corners of a line, clockwise from the upper left; y grows downwards."""

_NICENESS = 10
_MODELS = Path(rapidocr.__file__).parent / "models"
_SETTINGS: dict[str, object] = {
    "Global.log_level": "critical",
    "Global.use_cls": False,
    "Det.model_path": str(_MODELS / "PP-OCRv6_det_small.onnx"),
    "Det.limit_type": "max",
    "Det.limit_side_len": 1280,
    "Rec.model_path": str(_MODELS / "PP-OCRv6_rec_small.onnx"),
    "Rec.rec_batch_num": 1,
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}
"""Lines are looked for in a page of 1,280 pixels and read one by one: half the memory and time of the defaults, and as
many characters right."""


def main(memory_bytes: int) -> None:
    """Serve until standard input ends."""
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    cv2.setNumThreads(1)
    read = rapidocr.RapidOCR(params=_SETTINGS)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    target.write(as_frame(PictureAnswer()))
    target.flush()
    while head := source.read(HEAD.size):
        found = read(source.read(*HEAD.unpack(head)))
        text = join_page(found.boxes.tolist(), found.txts) if found.boxes is not None else ""
        target.write(as_frame(PictureAnswer(text=text)))
        target.flush()


def join_page(boxes: Sequence[Box], texts: Sequence[str]) -> str:
    """Return the text of a page in reading order, from its lines and where they stand."""
    lines = sorted(_straight(boxes, texts), key=lambda line: (-line.top - line.bottom, line.left))
    return join_segments(lines)


def _straight(boxes: Sequence[Box], texts: Sequence[str]) -> Iterator[LinePart]:
    """Turn the lines as the page was turned when it was scanned, so that neighbours stand on one height."""
    widest = sorted(boxes, key=_width)[-max(1, len(boxes) // 2) :]
    angle = median(atan2(right[1] - left[1], right[0] - left[0]) for left, right, *_ in widest)
    along, across = cos(angle), sin(angle)
    for box, text in zip(boxes, texts, strict=True):
        turned = [(x * along + y * across, y * along - x * across) for x, y in box]
        left, right = min(x for x, _ in turned), max(x for x, _ in turned)
        top, bottom = (turned[0][1] + turned[1][1]) / 2, (turned[2][1] + turned[3][1]) / 2
        if text.strip():
            yield LinePart(text.strip(), left, -bottom, right, -top)


def _width(box: Box) -> float:
    return box[1][0] - box[0][0]


if __name__ == "__main__":
    main(int(sys.argv[1]))
