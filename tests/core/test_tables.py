"""Tables in every format: alignment, marks, width, escaping."""

import csv
import io
from html.parser import HTMLParser

import pytest

from equipoise.core.errors import SpecError
from equipoise.core.tables import BOLD, TABLE_STYLES, Column, Table, TableCell, format_tables

HOSTILE = "<b>a|b & c_d$ \x1b[2J =1+1"
TABLE = Table(
    columns=(Column("method", "left"), Column("ECE"), Column("NLL")),
    rows=(
        (TableCell("ce"), TableCell("5.00 ± 1.00"), TableCell("0.2000", mark="≈")),
        (TableCell("focal"), TableCell("12.00", bold=True, mark="+"), TableCell("–")),
    ),
    caption="digits.",
    legend=((BOLD, "best"), ("≈", "not shown to be worse than the best"), ("+", "better than ce")),
    notes=("A note.",),
    label="digits, mlp",
    breaks=frozenset({1}),
)


def test_text_aligns_numbers_and_puts_marks_below_each_other():
    lines = TABLE.to_text(rules=True).splitlines()
    assert lines[:6] == [
        "method            ECE      NLL",
        "------------------------------",
        "ce      5.00 ± 1.00    0.2000≈",
        "------------------------------",
        "focal         12.00*+       –",
        "------------------------------",
    ]
    assert lines[6:] == [
        "digits. *: best; ≈: not shown to be worse than the best; +: better than ce.",
        "A note.",
    ]


def test_markdown_and_latex_keep_marks():
    assert "| focal | **12.00** + | – |" in TABLE.to_markdown().splitlines()
    assert "digits. Bold: best;" in TABLE.to_markdown()
    latex = TABLE.to_latex()
    assert r"ce & $5.00 \pm 1.00$ & $0.2000^{\approx}$ \\" in latex
    assert r"focal & $\mathbf{12.00}^{+}$ & -- \\" in latex
    assert r"\label{tab:digits-mlp}" in latex
    assert latex.count(r"\midrule") == 2
    assert latex.isascii()


def test_csv_has_values_only():
    assert list(csv.reader(io.StringIO(TABLE.to_csv()))) == [
        ["method", "ECE", "NLL"],
        ["ce", "5.00 ± 1.00", "0.2000"],
        ["focal", "12.00", "–"],
    ]


@pytest.mark.parametrize("width", [24, 30, 80])
def test_columns_that_do_not_fit_follow_in_blocks_with_the_names(width):
    lines = TABLE.to_text(width=width, rules=True).splitlines()
    assert max(map(len, lines)) <= width
    heads = sum(line.startswith("method") for line in lines)
    assert heads == (2 if width == 24 else 1)
    assert sum(line.startswith("focal") for line in lines) == heads


def test_text_that_may_wrap_gives_way_first():
    table = Table.of(("key", "meaning"), [("gamma", "a text that is much longer than the key")], align="lw")
    lines = table.to_text(width=20).splitlines()
    assert max(map(len, lines)) <= 20
    assert " ".join(" ".join(lines).split()) == "key meaning gamma a text that is much longer than the key"


class Tags(HTMLParser):
    """Collects the tags of a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)


def test_hostile_text_stays_text():
    table = Table.of((HOSTILE, "n"), [(HOSTILE, TableCell("1", detail=HOSTILE, mark="<"))], caption=HOSTILE)
    tags = Tags()
    tags.feed(table.to_html())
    assert set(tags.found) == {"p", "table", "thead", "tr", "th", "tbody", "td"}
    for style in TABLE_STYLES:
        assert "\x1b" not in format_tables([table], style)
    assert all(line.count(" | ") == 1 for line in table.to_markdown().splitlines()[:3])
    assert next(csv.reader(io.StringIO(table.to_csv())))[0].startswith("<")


def test_a_table_without_heads_or_rows():
    assert Table.of(("", ""), [("a", "1")]).to_text() == "a  1"
    assert Table.of(("a", "b"), []).to_text(rules=True).splitlines()[0] == "a  b"
    assert "<thead>" not in Table.of(("", ""), [("a", "1")]).to_html()


def test_a_row_of_another_length_is_an_error():
    with pytest.raises(SpecError, match="row 1 must have 2 cells, one per column, got 1"):
        Table.of(("a", "b"), [("1", "2"), ("1",)])


def test_an_unknown_format_is_an_error():
    with pytest.raises(SpecError, match="did you mean 'latex'"):
        format_tables([TABLE], "latx")
