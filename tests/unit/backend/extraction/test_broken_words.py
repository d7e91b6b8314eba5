import pytest

from backend.extraction.domain.blocks import Heading, Paragraph
from backend.extraction.domain.broken_words import BROKEN, join_broken_words


@pytest.mark.parametrize(
    ("parted", "elsewhere", "joined"),
    [
        ("ship-|ments", "", "shipments"),
        ("SHIP-|MENTS", "", "SHIPMENTS"),
        ("Liefer-|ung", "", "Lieferung"),
        ("постав-|ки", "", "поставки"),
        ("e-|mail", "", "e-mail"),
        ("e-|mail", "Our email", "email"),
        ("vitamin-|c", "", "vitamin-c"),
        ("well-|known", "a well-known place", "well-known"),
        ("well-|known", "It is known and runs well.", "well-known"),
        ("Well-|known", "He is Well. It is known. A wellknown place", "Wellknown"),
        ("ware-|house", "a house and this warehouse and ware", "warehouse"),
        ("Ware-|house", "Warehouses; the warehouse; Ware; house", "Warehouse"),
        ("state-of-|the-art", "", "state-of-the-art"),
        ("Anglo-|American", "", "Anglo-American"),
        ("COVID-|19", "", "COVID-19"),
        ("pre-|and postwar", "", "pre- and postwar"),
        ("Ein-|und Ausgang", "", "Ein- und Ausgang"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line_stays_where_it_is_its_words(parted: str, elsewhere: str, joined: str) -> None:
    blocks = [Paragraph(parted.replace("|", BROKEN)), Heading(1, elsewhere)]
    assert [block.text for block in join_broken_words(blocks)] == [joined, elsewhere]
