"""Messages as Outlook saves them, made for tests: small compound files ([MS-CFB]) of properties ([MS-OXMSG])."""

from collections.abc import Mapping
from struct import pack
from typing import Any

Storage = Mapping[str, Any]
"""Streams and storages by their names."""

_SECTOR, _MINI = 512, 64
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def storage(fixed: Mapping[int, bytes], head_bytes: int, **further: Any) -> dict[str, Any]:
    """Return a storage of properties: `p0037001F` is the stream of one, `attach_0` and `recip_0` are storages in it."""
    table = b"".join(pack("<HHI8s", 0, number, 0, value) for number, value in fixed.items())
    names = {
        "p": "__substg1.0_{}",
        "attach_": "__attach_version1.0_#0000000{}",
        "recip_": "__recip_version1.0_#0000000{}",
    }
    parts: dict[str, Any] = {"__properties_version1.0": bytes(head_bytes) + table}
    for name, content in further.items():
        kind = next(kind for kind in names if name.startswith(kind))
        parts[names[kind].format(name.removeprefix(kind))] = content
    return parts


def wide(text: str) -> bytes:
    return text.encode("utf-16-le")


def compound_file(root: Storage) -> bytes:
    """Write a file whose streams all lie in its mini stream, as those of less than 4,096 bytes do."""
    entries, mini = [_entry("Root Entry", 5)], bytearray()
    chains = list[int]()
    _add(entries, 0, root, mini, chains)
    directory = b"".join(bytes(entry) for entry in entries)
    directory += bytes(-len(directory) % _SECTOR)
    table = pack(f"<{len(chains)}I", *chains)
    table += b"\xff" * (-len(table) % _SECTOR)
    parts = [directory, table, bytes(mini) + bytes(-len(mini) % _SECTOR)]
    starts, fat = list[int](), [_FAT]
    for part in parts:
        count = len(part) // _SECTOR
        starts.append(len(fat) if count else _END)
        fat += [*range(len(fat) + 1, len(fat) + count), _END][:count] if count else []
    root_entry = bytearray(entries[0])
    root_entry[116:124] = pack("<II", starts[2], len(mini))
    parts[0] = bytes(root_entry) + parts[0][128:]
    assert len(fat) <= _SECTOR // 4
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    head += pack("<HHHHH6xII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1)
    head += pack("<IIIIIII", starts[0], 0, 4096, starts[1], len(table) // _SECTOR, _END, 0)
    head += pack("<I", 0) + b"\xff" * 432
    return (
        head
        + pack("<I", _FREE) * 0
        + pack(f"<{len(fat)}I", *fat)
        + b"\xff" * (_SECTOR - 4 * len(fat))
        + b"".join(parts)
    )


def _entry(name: str, kind: int, start: int = 0, size: int = 0) -> bytearray:
    written = wide(name)
    entry = bytearray(written + bytes(64 - len(written)))
    entry += pack("<HBBIII36xIII", len(written) + 2, kind, 1, _FREE, _FREE, _FREE, start, size, 0)
    return entry


def _add(entries: list[bytearray], above: int, parts: Storage, mini: bytearray, chains: list[int]) -> None:
    """Add what a storage holds, each entry the right sibling of the one before."""
    before = None
    for name, content in parts.items():
        number = len(entries)
        if isinstance(content, bytes):
            count = -(-len(content) // _MINI)
            first = len(chains)
            chains += [*range(first + 1, first + count), _END] if count else []
            mini += content + bytes(-len(content) % _MINI)
            entries.append(_entry(name, 2, first if count else _END, len(content)))
        else:
            entries.append(_entry(name, 1))
        place, at = (above, 76) if before is None else (before, 72)
        entries[place][at : at + 4] = pack("<I", number)
        before = number
        if not isinstance(content, bytes):
            _add(entries, number, content, mini, chains)
