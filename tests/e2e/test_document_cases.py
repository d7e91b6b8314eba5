"""Files with what must be found in them, through the API, as `make eval-documents CASES=…` tries those of a folder."""

from pathlib import Path

from tests.bench.eval_cases import CASES, read_cases
from tests.e2e.pair import lone_backend
from tests.servers.services import Launch
from tests.unit.backend.extraction.made_files import pdf_of

RTF = rb"{\rtf1\ansi Rent{\footnote in leap years} is due in {\deleted thirty }ninety days.\par {\v unseen}\par}"
TABLE = b"<h1>Fleet</h1><table><tr><th>Ship<th>Tons</tr><tr><td>Aino<td>31</tr><tr><td>Ida<td>4</tr></table>"


def test_files_are_read_right_through_the_api_and_faults_are_told(launch: Launch, tmp_path: Path) -> None:
    files = {"rent.rtf": RTF, "fleet.html": TABLE, "pages.pdf": pdf_of(("one",), ()), "empty.txt": b" "}
    for name, body in files.items():
        (tmp_path / name).write_bytes(body)
    right = CASES.validate_python(
        {
            "rent.rtf": {"ordered": ["ninety days", "in leap years"], "absent": ["thirty"], "notes": ["hidden"]},
            "fleet.html": {"headings": ["Fleet"], "together": [["Ship: Ida", "Tons: 4"]], "once": ["Aino"]},
            "pages.pdf": {"found": ["one"], "notes": ["page 2"]},
            "empty.txt": {"refused": "no text"},
        }
    )
    wrong = CASES.validate_python(
        {
            "rent.rtf": {"ordered": ["in leap years", "ninety days"], "absent": ["ninety"], "once": ["gold"]},
            "fleet.html": {"headings": ["Ship"], "together": [["Ship: Aino", "Tons: 4"]], "refused": "no text"},
            "pages.pdf": {"found": ["two"], "notes": ["page 1"]},
            "gone.txt": {},
        }
    )
    pair = lone_backend(launch, tmp_path / "service")
    with pair.http(pair.key("ann")) as client:
        assert read_cases(client, tmp_path, right) == {}
        faults = read_cases(client, tmp_path, wrong)
    assert {name: len(found) for name, found in faults.items()} == {
        "rent.rtf": 4,  # in another order, there, missing, and not found
        "fleet.html": 1,
        "pages.pdf": 3,
        "gone.txt": 1,
    }
