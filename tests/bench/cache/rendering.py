"""What was measured, as a table and as two plots: of characters, and of pixels."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from tests.bench.cache.layouts import DURABLE, LAYOUTS
from tests.bench.cache.measuring import Key, Share
from tests.bench.cache.simulators import SIMULATORS

_BAR_CHARACTERS = 50

_WIDTH, _ROW, _LEFT, _BAR = 1_000, 26, 290, 560
_GROUP = _ROW * len(LAYOUTS) + 52
_INK, _PALE, _OURS, _OTHERS = "#222222", "#dddddd", "#1f6f8b", "#c9a66b"


def render_table(shares: Mapping[Key, Share]) -> str:
    """Render a row for each layout: its share by simulator, and how far that is below `durable`."""
    rows = ((layout, *(_cell(shares, simulator, layout) for simulator in SIMULATORS)) for layout in LAYOUTS)
    return _aligned([("layout", *SIMULATORS), *rows])


def _cell(shares: Mapping[Key, Share], simulator: str, layout: str) -> str:
    value = shares[simulator, layout].value
    below = value - shares[simulator, DURABLE.name].value
    return f"{value:.4f}" if layout == DURABLE.name else f"{value:.4f} ({below:+.4f})"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def render_bars(shares: Mapping[Key, Share]) -> str:
    """Plot with characters, a group of bars for each simulator; the whole width is the maximum."""
    lines: list[str] = []
    width = max(map(len, LAYOUTS))
    for simulator in SIMULATORS:
        lines += ["", simulator]
        for layout in LAYOUTS:
            value = shares[simulator, layout].value
            bar = "#" * round(value * _BAR_CHARACTERS)
            lines.append(f"  {layout.ljust(width)}  |{bar.ljust(_BAR_CHARACTERS, '.')}| {value:.3f}")
    return "\n".join(lines[1:])


def draw_bars(shares: Mapping[Key, Share], title: str, path: Path) -> None:
    """Plot with pixels, into a PNG file."""
    image = Image.new("RGB", (_WIDTH, 60 + _GROUP * len(SIMULATORS)), "white")
    canvas = ImageDraw.Draw(image)
    canvas.text((20, 16), title, fill=_INK, font=ImageFont.load_default(20))
    for place, simulator in enumerate(SIMULATORS):
        _draw_group(canvas, shares, simulator, 60 + place * _GROUP)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def _draw_group(canvas: ImageDraw.ImageDraw, shares: Mapping[Key, Share], simulator: str, top: int) -> None:
    small, large = ImageFont.load_default(14), ImageFont.load_default(16)
    canvas.text((20, top), simulator, fill=_INK, font=large)
    for row, layout in enumerate(LAYOUTS):
        y = top + 26 + row * _ROW
        value = shares[simulator, layout].value
        colour = _OURS if layout == DURABLE.name else _OTHERS
        canvas.text((_LEFT - 10, y + 9), layout, fill=_INK, font=small, anchor="rm")
        canvas.rectangle((_LEFT, y, _LEFT + _BAR, y + _ROW - 8), fill=_PALE)
        canvas.rectangle((_LEFT, y, _LEFT + round(_BAR * value), y + _ROW - 8), fill=colour)
        canvas.text((_LEFT + _BAR + 12, y + 9), f"{value:.3f}", fill=_INK, font=small, anchor="lm")
