"""What stands in the line of a paragraph of a DOCX: runs, fields, formulas, revisions; and what hangs on it.

An element that is not known is taken for what it holds, so that text is lost nowhere but where it is known as unseen.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import ClassVar
from xml.etree.ElementTree import Element

from backend.extraction.domain.blocks import Picture
from backend.extraction.formats.docx.formulas import linear
from backend.extraction.formats.docx.numbering import Numbering
from backend.extraction.formats.docx.styles import Styles
from backend.extraction.formats.office_xml import Package, children_of, find_part, first_child, name_of, value
from backend.extraction.formats.pictures.files import picture_in_document

_UNSEEN = frozenset(
    {
        *("w:del", "w:moveFrom", "w:delText", "w:instrText", "w:delInstrText", "w:rt", "w:sdtPr", "w:sdtEndPr"),
        *("w:pPr", "w:rPr", "w:tblPr", "w:trPr", "w:tcPr", "w:sectPr", "w:rubyPr", "w:fldData"),
    }
)
_SIGNS = {
    "w:tab": "\t",
    "w:ptab": "\t",
    "w:br": "\n",
    "w:cr": "\n",
    "w:noBreakHyphen": "-",
    "a:br": "\n",
}
_SOFT_HYPHEN = "\u00ad"
_PRIVATE = range(0xE000, 0xF900)
"""Signs of fonts such as Wingdings, which mean nothing without the font."""

_WHITE = ("FFFFFF", "ffffff")

HIDDEN, EMBEDDED, OTHER_FORMAT = "hidden", "embedded", "other"


class Story:
    """What the paragraphs of one document share: its styles and lists, its notes, and what was left out of it."""

    def __init__(self, package: Package, main_part: str) -> None:
        self.package = package
        self.related = self.related_now = package.relationships(main_part)
        self.styles = Styles(self._read("styles"))
        self.numbering = Numbering(self._read("numbering"), self.styles)
        self.left_out: Counter[str] = Counter()
        self._notes = dict[str, dict[str, Element]]()
        self._pictures = set[str]()

    def take_picture(self, reference: str) -> Picture | None:
        """Return a picture by what the part that is read calls it; one that is repeated is taken once."""
        part = self.related_now[reference].part if reference in self.related_now else reference
        if part in self._pictures:
            return None
        self._pictures.add(part)
        return picture_in_document(partial(self.package.read_bytes, part))

    def take_note(self, kind: str, note_id: str) -> Element | None:
        """Return a footnote, endnote or comment; each is taken once, so that notes of notes end."""
        if kind not in self._notes:
            root = self._read(f"{kind}s")
            self._notes[kind] = {value(each, "w:id") or "": each for each in children_of(root, f"w:{kind}")}
        return self._notes[kind].pop(note_id, None)

    def _read(self, kind: str) -> Element | None:
        return self.package.read(find_part(self.related, kind))


class Fields:
    """The fields that are open; they may go over paragraphs. What tells Word how to compute one is no text."""

    def __init__(self) -> None:
        self._shows: list[bool] = []

    @property
    def is_seen(self) -> bool:
        """Say whether text stands in no field's instruction."""
        return all(self._shows)

    def mark(self, kind: str | None) -> None:
        """Note where a field begins, where its result does, and where it ends."""
        match kind:
            case "begin":
                self._shows.append(False)
            case "separate" if self._shows:
                self._shows[-1] = True
            case "end" if self._shows:
                self._shows.pop()
            case _:
                pass

    def end_instructions(self) -> None:
        """Take what follows as text: an instruction ends with its paragraph, or the field is damaged."""
        self._shows = [True] * len(self._shows)


class ParagraphText:
    """The text of one paragraph, as it is collected."""

    def __init__(self, story: Story, fields: Fields, *, is_on_page: bool, properties: Element | None) -> None:
        self._story = story
        self._fields = fields
        self._is_on_page = is_on_page
        self._properties = properties
        self._texts = list[str]()
        self._readings = list[str]()
        self._behind_formula = 0
        self.boxes = list[Element]()
        self.notes = list[tuple[str, Element]]()
        self.pictures = list[Picture]()

    @property
    def text(self) -> str:
        """What was collected."""
        self._end_readings()
        return "".join(self._texts)

    def take(self, element: Element) -> None:
        """Collect what an element shows."""
        name = name_of(element.tag)
        if name in _UNSEEN:
            return
        if name in _SIGNS:
            self._say(_SIGNS[name])
        elif name in self._TAKE:
            self._TAKE[name](self, element)
        else:
            self.take_all(element)

    def take_all(self, element: Element) -> None:
        """Collect what the children of an element show."""
        for each in element:
            self.take(each)

    def _say(self, text: str) -> None:
        if self._fields.is_seen and text:
            self._end_readings()
            self._texts.append(text.replace(_SOFT_HYPHEN, ""))

    def _text(self, element: Element) -> None:
        self._say(element.text or "")

    def _run(self, element: Element) -> None:
        properties = first_child(element, "w:rPr")
        is_hidden = self._story.styles.hides(properties, self._properties) or (
            self._is_on_page and _is_white(properties, self._properties)
        )
        if is_hidden and any(each.text for each in children_of(element, "w:t")):
            self._story.left_out[HIDDEN] += 1
        elif not is_hidden:
            self.take_all(element)
        else:
            for each in children_of(element, "w:fldChar"):
                self._field(each)

    def _field(self, element: Element) -> None:
        self._fields.mark(value(element, "w:fldCharType"))
        choices = first_child(element, "w:ffData", "w:ddList")
        if choices is not None:
            entries = [value(each) or "" for each in children_of(choices, "w:listEntry")]
            chosen = int(value(first_child(choices, "w:result")) or 0)
            self._texts += entries[chosen : chosen + 1]

    def _ruby(self, element: Element) -> None:
        """Collect the base; the reading stands behind the last of several in a row, so that it parts no word."""
        readings, self._readings = self._readings, []
        for base in children_of(element, "w:rubyBase"):
            self.take_all(base)
        self._readings = [*readings, "".join(each.text or "" for each in _texts_under(first_child(element, "w:rt")))]

    def _end_readings(self) -> None:
        if reading := "".join(self._readings):
            self._texts.append(f"({reading})")
        self._readings = []

    def _formula(self, element: Element) -> None:
        if self._texts and len(self._texts) == self._behind_formula:
            self._say(" ")
        self._say(linear(element))
        self._behind_formula = len(self._texts)

    def _box(self, element: Element) -> None:
        self.boxes.append(element)

    def _alternatives(self, element: Element) -> None:
        """Take the first of the forms of one thing; the others are for older programs."""
        self.take_all(next(children_of(element, "mc:Choice", "mc:Fallback"), element))

    def _reference(self, element: Element) -> None:
        kind = name_of(element.tag).removeprefix("w:").removesuffix("Reference")
        note = self._story.take_note(kind, value(element, "w:id") or "")
        if note is not None:
            self.notes.append((kind, note))

    def _symbol(self, element: Element) -> None:
        code = int(value(element, "w:char") or "0", 16)
        self._say("" if code in _PRIVATE or not code else chr(code))

    def _picture(self, element: Element) -> None:
        drawn = next((each for each in element.iter() if name_of(each.tag) in ("a:blip", "v:imagedata")), None)
        picture = self._story.take_picture(value(drawn, "r:embed") or value(drawn, "r:id") or "")
        self.pictures += [picture] if picture is not None else []

    def _skip_embedded(self, element: Element) -> None:
        self._story.left_out[EMBEDDED] += 1

    def _take_drawn(self, element: Element) -> None:
        self.take_all(element)
        self._say("\n")

    _TAKE: ClassVar = {
        "w:t": _text,
        "a:t": _text,
        "w:r": _run,
        "w:fldChar": _field,
        "w:ruby": _ruby,
        "m:oMath": _formula,
        "w:txbxContent": _box,
        "mc:AlternateContent": _alternatives,
        "w:footnoteReference": _reference,
        "w:endnoteReference": _reference,
        "w:commentReference": _reference,
        "w:sym": _symbol,
        "pic:pic": _picture,
        "v:imagedata": _picture,
        "OLEObject": _skip_embedded,
        "a:p": _take_drawn,
    }


def _texts_under(element: Element | None) -> Iterator[Element]:
    return (each for each in (element.iter() if element is not None else ()) if name_of(each.tag) == "w:t")


def _is_white(run: Element | None, paragraph: Element | None) -> bool:
    """Say whether a run is white, on nothing that would let it be seen."""
    return (
        value(first_child(run, "w:color")) in _WHITE
        and first_child(run, "w:shd") is None
        and first_child(run, "w:highlight") is None
        and first_child(paragraph, "w:shd") is None
        and first_child(paragraph, "w:pStyle") is None
    )
