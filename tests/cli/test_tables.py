"""Tables are no wider than the terminal, and uncut in a pipe."""

import pytest

from equipoise.cli import output
from equipoise.cli.output import print_table

ROWS = [
    ("focal", "a text that is much longer than the others and has to be wrapped somewhere"),
    ("ce", "short"),
]


@pytest.mark.parametrize("width", [30, 40, 79])
def test_wide_cells_are_wrapped_and_nothing_is_lost(width, monkeypatch, capsys):
    monkeypatch.setattr(output, "terminal_width", lambda: width)
    print_table(("key", "what"), ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) > 3
    assert set(" ".join(lines).split()) == {
        "key",
        "what",
        *(word for row in ROWS for text in row for word in text.split()),
    }


def test_lines_stay_whole_in_a_pipe(capsys):
    print_table(("key", "what"), ROWS)
    assert len(capsys.readouterr().out.splitlines()) == 3
