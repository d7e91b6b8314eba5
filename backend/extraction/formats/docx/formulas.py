"""Formulas of office documents (OMML) in one line, such as `x=(-b±√(b^2-4ac))/(2a)`."""

from collections.abc import Callable
from xml.etree.ElementTree import Element

from backend.extraction.formats.office_xml import children_of, first_child, name_of, value


def linear(element: Element) -> str:
    """Return a formula, or a part of one."""
    name = name_of(element.tag)
    if name in ("m:t", "w:t"):
        return element.text or ""
    if name.endswith("Pr") or name in ("w:del", "w:moveFrom"):
        return ""
    return _FORMS[name](element) if name in _FORMS else _all(element)


def _all(element: Element | None) -> str:
    return "".join(map(linear, element if element is not None else ()))


def _of(element: Element, name: str) -> str:
    return _all(first_child(element, name))


def _group(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"


def _fraction(element: Element) -> str:
    return f"{_group(_of(element, 'm:num'))}/{_group(_of(element, 'm:den'))}"


def _scripts(element: Element) -> str:
    below, above = _of(element, "m:sub"), _of(element, "m:sup")
    return (f"_{_group(below)}" if below else "") + (f"^{_group(above)}" if above else "")


def _with_scripts(element: Element) -> str:
    return _group(_of(element, "m:e")) + _scripts(element)


def _root(element: Element) -> str:
    degree = _of(element, "m:deg")
    return f"{f'{degree}' if degree else ''}√{_group(_of(element, 'm:e'))}"


def _sum(element: Element) -> str:
    sign = value(first_child(element, "m:naryPr", "m:chr"), "m:val")
    return f"{'∫' if sign is None else sign}{_scripts(element)} {_of(element, 'm:e')}"


def _brackets(element: Element) -> str:
    marks = first_child(element, "m:dPr")
    opening, closing, between = (
        value(first_child(marks, name), "m:val") for name in ("m:begChr", "m:endChr", "m:sepChr")
    )
    inner = ("|" if between is None else between).join(map(_all, children_of(element, "m:e")))
    return f"{'(' if opening is None else opening}{inner}{')' if closing is None else closing}"


def _function(element: Element) -> str:
    return f"{_of(element, 'm:fName')} {_of(element, 'm:e')}"


def _rows(element: Element) -> str:
    return "[" + "; ".join(", ".join(map(_all, children_of(row, "m:e"))) for row in children_of(element, "m:mr")) + "]"


def _lines(element: Element) -> str:
    return "; ".join(map(_all, children_of(element, "m:e")))


_FORMS: dict[str, Callable[[Element], str]] = {
    "m:f": _fraction,
    "m:sSup": _with_scripts,
    "m:sSub": _with_scripts,
    "m:sSubSup": _with_scripts,
    "m:rad": _root,
    "m:nary": _sum,
    "m:d": _brackets,
    "m:func": _function,
    "m:m": _rows,
    "m:eqArr": _lines,
}
