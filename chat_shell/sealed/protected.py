"""A type for text that must not leave the sealed room: it cannot be printed, serialised, compared or copied."""

from dataclasses import dataclass
from typing import NoReturn, final


class TextIsProtected(TypeError):
    """Something tried to use protected text; the message names the text's ids and contains nothing of it."""


@final
class ProtectedText:
    """A text of a restricted base. It is not a `str`, and every way to read it except `reveal` raises."""

    __slots__ = ("__chunk_id", "__knowledge_base_id", "__text")

    def __init__(self, text: str, knowledge_base_id: str, chunk_id: str):
        object.__setattr__(self, "_ProtectedText__text", text)
        object.__setattr__(self, "_ProtectedText__knowledge_base_id", knowledge_base_id)
        object.__setattr__(self, "_ProtectedText__chunk_id", chunk_id)

    def reveal(self) -> str:
        """Return the text; a test of the whole repository ensures that only the sealed room calls this."""
        return self.__text

    def __repr__(self) -> str:
        return f"<protected {self.__knowledge_base_id} {self.__chunk_id}>"

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TextIsProtected(f"{self!r} cannot be used outside of the sealed room")

    def __dir__(self) -> list[str]:
        return ["reveal"]

    def __init_subclass__(cls, **_kwargs: object) -> None:
        raise TextIsProtected("the class of protected text is final")

    @classmethod
    def __get_pydantic_core_schema__(cls, *_args: object) -> NoReturn:
        raise TextIsProtected("protected text has no schema")

    __str__ = __format__ = __bool__ = __hash__ = __eq__ = __ne__ = _refuse
    __setattr__ = __delattr__ = _refuse
    __reduce__ = __reduce_ex__ = __getstate__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __iter__ = __reversed__ = __len__ = __contains__ = __getitem__ = _refuse
    __bytes__ = __int__ = __float__ = __index__ = __fspath__ = _refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refuse
    __copy__ = __deepcopy__ = _refuse


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProtectedChunk:
    """A chunk of a restricted base; `document` is the name of its document, `canary` the token planted in that."""

    knowledge_base_id: str
    chunk_id: str
    ordinal: int
    document: ProtectedText
    heading_path: tuple[ProtectedText, ...]
    text: ProtectedText
    canary: ProtectedText
