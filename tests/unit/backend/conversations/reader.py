"""A reader who knows nothing but the messages of one epoch, and what this reader believes after each.

It is written without the code that it checks, sentences included.
"""

from backend.prompt.domain.context_policy import ContextPlan

WHOLE = (
    "Knowledge bases in scope are now:",
    "Knowledge bases in scope are now, replacing all that earlier messages said of them:",
)
CHANGED = "Knowledge bases in scope are now changed; this replaces what earlier messages said of these:"
NONE = "Knowledge bases in scope are now: none. This replaces what earlier messages said of them."
TRUNCATED = "Truncated, in scope with the description left out:"
SUPERSEDED = "Superseded, no longer in scope:"


class Reader:
    """Believes the newest word on each base and block.

    `bases` maps an id to its name and description; the description is None where it was left out.
    """

    def __init__(self) -> None:
        self.bases: dict[str, tuple[str, str | None]] = {}
        self.blocks: dict[str, str] = {}

    def read(self, plan: ContextPlan) -> None:
        """Take in a turn's context."""
        if plan.kb_meta_prompt:
            self._read_bases(plan.kb_meta_prompt)
        for block in plan.dynamic_blocks:
            self._read_block(block.name, block.text)

    def _read_bases(self, text: str) -> None:
        opening, *paragraphs = text.split("\n\n")
        if opening in (*WHOLE, NONE):
            self.bases = {}
        else:
            assert opening == CHANGED
        for paragraph in paragraphs:
            self._read_paragraph(paragraph)

    def _read_paragraph(self, paragraph: str) -> None:
        first, *lines = paragraph.split("\n")
        if first == TRUNCATED:
            self.bases.update((base_id, (name, None)) for base_id, name in map(_listed, lines))
        elif first == SUPERSEDED:
            for base_id, name in map(_listed, lines):
                assert self.bases.pop(base_id)[0] == name
        else:
            name = lines[0].removeprefix("  name: ") if lines[0].startswith("  name: ") else ""
            self.bases[first.removeprefix("- id: ")] = (name, paragraph)

    def _read_block(self, name: str, text: str) -> None:
        if text == f'The earlier text "{name}" no longer applies.':
            del self.blocks[name]
            return
        replacing = f'The following replaces the earlier text "{name}":\n\n'
        assert text.startswith(replacing) == (name in self.blocks)
        self.blocks[name] = text.removeprefix(replacing)


def _listed(line: str) -> tuple[str, str]:
    base_id, _, name = line.removeprefix("- id: ").partition("; name: ")
    return base_id, name
