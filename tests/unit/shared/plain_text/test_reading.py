"""How a text is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.plain_text.reading import as_read, show_lines


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("the [vault](https://wiki.example.org/a) is", "the vault is"),
        ("the [vault][ops] is ![a plan](b.png 'c') so", "the vault is a plan so"),
        ("so[^1] it is[^note]", "so it is"),
        ("a<!-- b\nc -->d", "ad"),
        ("<b>soft</b> <em class='x'>kettle</em>", "**soft** **kettle**"),
        ("<code>a b</code> <span>c</span>", "`a b` c"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("a&nbsp;b &amp; c", "a b & c"),
        ("a\\_b \\* c", "a_b * c"),
        ("a\u00adb\u200bc d\u2011e f’s", "abc d-e f's"),
        ("long\n  line\n> goes\n> on", "long line goes on"),
        ("甲乙\n丙丁，\n戊 a\nb", "甲乙丙丁,戊 a b"),
        ("Quill-\nmarrow", "Quillmarrow"),
        ("a<br>b", "a b"),
        ("# Head\ntext\nmore", "# Head\ntext more"),
        ("• one\n  two\n◦ three\n[x] four", "- one two\n- three\n- four"),
        ("（一）甲\n①乙\n1.1 c\n(a) d", "1. 甲\n1. 乙\n1. c\n1. d"),
        ("a | b\nc | d", "a | b\nc | d"),
        ("one\n\ntwo", "one\n\ntwo"),
        ("<ruby>汉<rt>hàn</rt></ruby>字", "汉字"),
    ],
)
def test_a_text_is_read_as_it_is_shown(text: str, read: str):
    assert as_read(text) == read


@given(st.text(alphabet="ab\n []()<>!&;-#|\\^*汉。，1. "))
def test_whatever_is_written_can_be_read(text: str):
    assert as_read(text).count("\n") <= show_lines(text).count("\n") <= text.count("\n") + text.count("<")
