"""The closed lists of the grade `strict`: the codes of findings, and what they say."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import cast

import shared
from shared.disclosure.languages import Language

Phrases = Mapping[str, tuple[str, str]]
"""By code, what it says in English and in Chinese."""

MAX_PHRASE_CHARACTERS = 50
"""With two areas of the largest size a sentence is then no longer than an item of a summary may be."""

EXTENSIBLE = ("weaknesses", "strengths", "actions", "effects", "relations")
"""The lists to which an operator may add codes of their own."""

_SHIPPED = Path(shared.__file__).parent / "disclosure" / "findings.toml"
_CODE = re.compile(r"[a-z][a-z_]{0,47}")
_VERSION_CHARACTERS = 8


class WrongCodebook(ValueError):
    """A file of further codes cannot be used; the message says which entry, and why."""


@dataclass(frozen=True, slots=True)
class Codebook:
    """The lists by name; `version` tells those of an operator from those that are shipped, whose version is empty."""

    lists: Mapping[str, Phrases]
    version: str = ""

    def phrase(self, name: str, code: str, language: Language | None) -> str:
        """Return what a code says; in English unless the language is Chinese."""
        return self.lists[name][code][language is Language.CHINESE]


@cache
def read_shipped() -> Codebook:
    """Read the lists that come with the product."""
    return Codebook(_read_lists(_SHIPPED.read_text(encoding="utf-8")))


def extend_codebook(text: str) -> Codebook:
    """Return the shipped lists with an operator's codes, which are given in the same form.

    Raises:
        WrongCodebook: an entry has not this form, or is in the lists already.
    """
    shipped, added = read_shipped().lists, _read_lists(text)
    for name, phrases in added.items():
        if name not in EXTENSIBLE:
            raise WrongCodebook(f"[{name}]: only {', '.join(EXTENSIBLE)} can be extended")
        if known := phrases.keys() & shipped[name].keys():
            raise WrongCodebook(f"[{name}] {min(known)}: the code is in the list already")
    lists = {name: {**phrases, **added.get(name, {})} for name, phrases in shipped.items()}
    return Codebook(lists, sha256(text.encode()).hexdigest()[:_VERSION_CHARACTERS])


def _read_lists(text: str) -> dict[str, Phrases]:
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WrongCodebook(str(error)) from None
    return {name: _read_list(name, entries) for name, entries in read.items()}


def _read_list(name: str, entries: object) -> Phrases:
    if not isinstance(entries, dict):
        raise WrongCodebook(f"{name}: it must be a table of codes")
    table = cast("dict[str, object]", entries)
    return {code: _read_phrases(f"[{name}] {code}", code, phrases) for code, phrases in table.items()}


def _read_phrases(place: str, code: str, phrases: object) -> tuple[str, str]:
    if not _CODE.fullmatch(code) or code == "none":
        raise WrongCodebook(f"{place}: a code has small letters and underscores, at most 48")
    match phrases:
        case [str(english), str(chinese)] if _fits(english) and _fits(chinese):
            return english, chinese
        case _:
            raise WrongCodebook(
                f"{place}: it must be an English and a Chinese phrase of at most {MAX_PHRASE_CHARACTERS} characters, "
                "without figures"
            )


def _fits(phrase: str) -> bool:
    return phrase.isprintable() and 0 < len(phrase.strip()) <= MAX_PHRASE_CHARACTERS and not re.search(r"\d", phrase)


def compose_sentence(form: str, given: Mapping[str, str], language: Language | None) -> str:
    """Put phrases into a form such as `{area} depends on {other}`, and make a sentence of it."""
    filled = form.format_map(given)
    return f"{filled}。" if language is Language.CHINESE else f"{filled[:1].upper()}{filled[1:]}."


def list_codes(book: Codebook, names: Sequence[str]) -> str:
    """List codes with what they say in English, for the prompt."""
    rows = ("\n".join(f"- {code}: {english}" for code, (english, _) in book.lists[name].items()) for name in names)
    return "\n\n".join(f"{name}:\n{row}" for name, row in zip(names, rows, strict=True))
