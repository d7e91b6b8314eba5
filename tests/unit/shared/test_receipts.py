"""A chain of receipts: one changed byte, and one receipt that is missing, are found without a service."""

import random
from collections.abc import Sequence
from functools import cache

import pytest

from shared.receipts import END, BrokenChain, ReceiptSigner, SealedReceipt, verify_chain

SIGNER, OTHER = ReceiptSigner("secret"), ReceiptSigner("another secret")
LENGTH = 100_000


class Unsigned(ReceiptSigner):
    """Only the last signature of a chain is verified: those before it are covered by the digests."""

    def seal(self, members: dict[str, object], number: int, previous: str) -> SealedReceipt:  # type: ignore[override]
        return SealedReceipt(f'{{"number":{number},"object":"receipt","previous":"{previous}"}}', "ab" * 64)


@cache
def exported(length: int) -> tuple[bytes, ...]:
    """Return the lines of an export."""
    signer, previous, lines = Unsigned("secret"), "", list[bytes]()
    for number in range(1, length + 1):
        sealed = signer.seal({}, number, previous)
        previous = sealed.digest
        lines.append(sealed.line + b"\n")
    return (*lines, SIGNER.seal({"object": END}, length + 1, previous).line + b"\n")


def flip(line: bytes, place: int) -> bytes:
    return line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]


def is_whole(lines: Sequence[bytes], key: str = SIGNER.public_key) -> bool:
    try:
        return verify_chain(lines, key) == len(lines) - 1
    except BrokenChain:
        return False


def test_a_whole_chain_is_whole() -> None:
    assert is_whole(exported(LENGTH))
    assert is_whole(exported(0))


@pytest.mark.parametrize("at", [0, 1, LENGTH // 2, LENGTH - 1, LENGTH])
def test_in_a_long_chain_one_flipped_byte_and_one_dropped_receipt_are_found(at: int) -> None:
    lines = list(exported(LENGTH))
    assert not is_whole(lines[:at] + lines[at + 1 :])
    lines[at] = flip(lines[at], random.Random(at).randrange(len(lines[at]) - 1))
    assert not is_whole(lines)


def test_what_is_cut_off_is_missed_unless_an_older_end_is_put_in_its_place() -> None:
    newer, older = exported(5), exported(3)
    assert not is_whole(newer[:3])
    assert verify_chain(older, SIGNER.public_key) == 3


def test_each_byte_counts() -> None:
    lines = exported(3)
    for at, line in enumerate(lines):
        for place in range(len(line) - 1):
            assert not is_whole([*lines[:at], flip(line, place), *lines[at + 1 :]]), (at, place)


@pytest.mark.parametrize("lines", [(), (b"nonsense\n",), exported(3)[:-1], (*exported(3), exported(3)[-1])])
def test_what_is_no_export_is_no_chain(lines: tuple[bytes, ...]) -> None:
    assert not is_whole(lines)


@pytest.mark.parametrize("key", [OTHER.public_key, "", "zz"])
def test_another_key_verifies_nothing(key: str) -> None:
    assert not is_whole(exported(3), key)
