"""docs/settings.md has a row for each setting of both services, with the default and the type that it has."""

import re

from deploy.site.settings_page import PAGE, SERVICES, list_named_settings, rewritten

TEXT = PAGE.read_text(encoding="utf-8")


def test_every_setting_has_one_row():
    assert sorted(list_named_settings(TEXT)) == sorted({name for settings in SERVICES for name in settings.variables()})


def test_defaults_and_types_are_those_of_the_code():
    assert rewritten(TEXT) == TEXT, "run: python -m deploy.site.settings_page"


def test_every_row_says_what_the_setting_means():
    meanings = re.findall(r"^\| `[A-Z_]+` \|.*\| (.*) \|$", TEXT, re.MULTILINE)
    assert [meaning for meaning in meanings if len(meaning) < len("its model")] == []


def test_a_row_that_is_not_true_is_written_anew():
    row = "| `BACKEND_PORT` | `8000` | whole number from 0 to 65535 | its port |\n"
    assert rewritten("| `BACKEND_PORT` | `9000` | text | its port |\n") == row
    assert rewritten("| `BACKEND_PORTS` | `9000` | text | its port |\n").startswith("| `BACKEND_PORTS` | `9000`")
