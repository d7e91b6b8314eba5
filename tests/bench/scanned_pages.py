"""Pages as a scanner makes them: 300 dots an inch, a little turned, blurred, with noise and specks.

The texts are our own. The fonts are those of the machine: DejaVu, and Noto CJK for Chinese.
"""

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

TEXTS: dict[str, list[str]] = json.loads(Path(__file__).with_name("scan_texts.json").read_text(encoding="utf-8"))
"""Paragraphs by language."""

_FAMILIES = {
    "English": ("DejaVu Serif", "DejaVu Sans"),
    "Chinese": ("Noto Serif CJK SC", "Noto Sans CJK SC"),
}
_POINTS = (10, 11, 12, 9, 10.5)
_SIZE, _MARGIN, _TOP, _WIDTH = (2480, 3508), 290, 300, 1900
_DOTS_PER_POINT = 300 / 72
_PAPER, _INK = 250, 25


def scan_page(language: str, number: int) -> tuple[str, Image.Image]:
    """Return the text of a page and its picture, in shades of grey; the same for the same number.

    Raises:
        FileNotFoundError: the machine does not have the font.
    """
    chance = random.Random(number)
    pixels = int(_POINTS[number % len(_POINTS)] * _DOTS_PER_POINT)
    font = _font(_FAMILIES[language][number % 2], pixels)
    first = number % len(TEXTS[language])
    paragraphs = TEXTS[language][first:] + TEXTS[language][:first]
    page = Image.new("L", _SIZE, _PAPER)
    pen, y = ImageDraw.Draw(page), _TOP
    for line in _lines(paragraphs, font):
        pen.text((_MARGIN, y), line, font=font, fill=_INK)
        y += int(pixels * 1.5)
    return "\n\n".join(paragraphs), _scanned(page, chance)


def _lines(paragraphs: list[str], font: ImageFont.FreeTypeFont) -> Iterator[str]:
    for paragraph in paragraphs:
        gap = " " if paragraph.isascii() else ""
        line = ""
        for word in paragraph.split() if gap else paragraph:
            if line and font.getlength(line + gap + word) > _WIDTH:
                yield line
                line = word
            else:
                line = line + gap + word if line else word
        yield line
        yield ""


def _scanned(page: Image.Image, chance: random.Random) -> Image.Image:
    turned = page.rotate(chance.uniform(-1, 1), resample=Image.Resampling.BICUBIC, fillcolor=_PAPER)
    blurred = turned.filter(ImageFilter.GaussianBlur(0.8))
    noisy = ImageChops.add(blurred, Image.effect_noise(_SIZE, 18), offset=-128)
    pen = ImageDraw.Draw(noisy)
    for _ in range(1500):
        x, y = chance.randrange(_SIZE[0]), chance.randrange(_SIZE[1])
        pen.ellipse((x, y, x + chance.randrange(1, 4), y + chance.randrange(1, 4)), fill=chance.randrange(30, 110))
    return noisy


def _font(family: str, pixels: int) -> ImageFont.FreeTypeFont:
    asked = ("fc-match", "--format", "%{file}\n%{index}\n%{family}", family)
    file, index, found = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split("\n")
    if family not in found.split(",") or not Path(file).exists():
        raise FileNotFoundError(f"the font {family} is not installed")
    return ImageFont.truetype(file, pixels, index=int(index) & 0xFFFF)
