"""Numbers of spreadsheets as they are seen: `7.5%`, `1,234.50 EUR` (ECMA-376, part 1, 18.8.31)."""

import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from typing import NamedTuple

_DIGITS = re.compile(r"[#0?][#0?,]*(?:\.[#0?]*)?,*|\.[#0?]+")
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|[_*].')
_PLAIN = ("General", "@", "")
_NOT_PLAIN = re.compile(r"[eE][+-]|[#0?]\s*/|[dmyhs]", re.IGNORECASE)
_MAX_DECIMALS = 30


class _Form(NamedTuple):
    before: str
    after: str
    decimals: int
    optional: int
    is_grouped: bool
    digits: int
    shift: int


def show_number(number: float, form: str) -> str | None:
    """Return a number in a format; None where the format is none of numbers, or changes nothing.

    What the format hides, such as further decimals, stands behind in brackets.
    """
    sections = form.split(";")
    section = sections[1] if number < 0 and len(sections) > 1 and sections[1] else sections[0]
    read = None if form in _PLAIN else _read_form(section)
    if read is None:
        return None
    try:
        shown = _write(abs(number) if section is not sections[0] else number, read)
    except (InvalidOperation, OverflowError, ValueError):
        return None
    raw = f"{number:.15g}"
    digits = shown.replace(",", "").replace("(", "-")
    return shown if raw in digits or digits == raw else f"{shown} ({raw})"


@lru_cache(1000)
def _read_form(section: str) -> _Form | None:
    text = _LITERAL.sub(lambda found: re.sub("(.)", "\x01\\1", found[1] or found[2] or found[3] or ""), section)
    bare = re.sub("\x01.", "", text)
    found = _DIGITS.search(text)
    if found is None or _NOT_PLAIN.search(bare) or len(_DIGITS.findall(bare)) > 1:
        return None
    kept = found[0].rstrip(",")
    whole, _, part = kept.partition(".")
    return _Form(
        before=text[: found.start()].replace("\x01", ""),
        after=text[found.end() :].replace("\x01", ""),
        decimals=min(len(part), _MAX_DECIMALS),
        optional=part.count("#"),
        is_grouped="," in whole,
        digits=whole.count("0"),
        shift=2 * bare.count("%") - 3 * (len(found[0]) - len(kept)),
    )


def _write(number: float, form: _Form) -> str:
    exact = Decimal(repr(number)).scaleb(form.shift).quantize(Decimal(1).scaleb(-form.decimals), ROUND_HALF_UP)
    text = f"{abs(exact):{',' if form.is_grouped else ''}f}"
    whole, dot, part = text.partition(".")
    kept = part[: form.decimals - form.optional] + part[form.decimals - form.optional :].rstrip("0")
    sign = "-" if exact < 0 else ""
    return f"{sign}{form.before}{whole.rjust(form.digits, '0')}{dot if kept else ''}{kept}{form.after}".strip()
