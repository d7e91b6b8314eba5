"""JSON text that all parsers read alike: UTF-8, without NaN and lone surrogates, keys in their original order."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import NoReturn, cast

from shared.errors import InvalidRequest
from shared.models.invalid_fields import place_of
from shared.models.values import JsonValue

Path = tuple[str | int, ...]


def encode_json(value: object, place: str = "") -> bytes:
    """Encode a JSON value without spaces; `place` is its name in an error.

    Raises:
        InvalidRequest: the value holds NaN, an infinite number, a lone surrogate or an object that JSON does not have,
            or is nested too deeply.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError as error:
        raise InvalidRequest(f"{place or 'body'}: nested too deeply", param=place or None) from error
    except (TypeError, ValueError) as error:
        culprit = place_of(place, next(_unwritable_paths(value, ()), ()))
        raise InvalidRequest(f"{culprit or 'body'}: cannot be written as JSON", param=culprit or None) from error


def decode_json(text: bytes | str, place: str = "") -> JsonValue:
    """Decode JSON text; whole numbers of any size keep their value.

    Raises:
        InvalidRequest: the text is not valid JSON, or not valid UTF-8.
    """
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        return json.loads(decoded, parse_constant=_refuse_constant)
    except (RecursionError, ValueError) as error:
        raise InvalidRequest(f"{place or 'body'}: is no valid JSON", param=place or None) from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _unwritable_paths(value: object, path: Path) -> Iterator[Path]:
    """Return the paths of all values that JSON text cannot hold."""
    if isinstance(value, Mapping):
        members = cast(Mapping[object, object], value).items()
        yield from chain.from_iterable(_unwritable_paths_of_member(key, member, path) for key, member in members)
    elif isinstance(value, list | tuple):
        elements = enumerate(cast(Sequence[object], value))
        yield from chain.from_iterable(_unwritable_paths(element, (*path, index)) for index, element in elements)
    elif not _is_writable(value):
        yield path


def _unwritable_paths_of_member(key: object, member: object, path: Path) -> Iterator[Path]:
    if isinstance(key, str) and _is_writable(key):
        return _unwritable_paths(member, (*path, key))
    return iter((path,))


def _is_writable(scalar: object) -> bool:
    if isinstance(scalar, str):
        return not any("\ud800" <= character <= "\udfff" for character in scalar)
    if isinstance(scalar, float):
        return isfinite(scalar)
    return scalar is None or isinstance(scalar, int)
