"""Text of others in output of ours: no control sequence, markup, formula or secret gets through."""

import csv
import io

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.cli import main
from equipoise.cli.output import safe_stream
from equipoise.core.errors import DataError
from equipoise.core.escaping import csv_cell, latex_text, markdown_text, visible, without_secrets
from equipoise.core.reading import read_predictions
from equipoise.evaluate import audit
from equipoise.experiments import compare_seeds, format_table

SECRETS = {
    "s3://AK:wJ/K7@bucket/x.parquet": "s3://bucket/x.parquet",
    "s3://AK:wJalr@bucket/x.parquet": "s3://bucket/x.parquet",
    "s3://AK:w@J/K7@bucket/x.parquet": "s3://bucket/x.parquet",
    "s3://token@bucket/x.parquet": "s3://bucket/x.parquet",
    "s3://bucket/x.parquet?region=north&secret_key=wJ/K7": "s3://bucket/x.parquet?region=north&secret_key=***",
    "https://a.net/c/x.parquet?sv=2022&sig=wJ%2FK7%3D": "https://a.net/c/x.parquet?sv=***&sig=***",
    "gs://bucket/x@2.parquet": "gs://bucket/x@2.parquet",
    "x@2.parquet?": "x@2.parquet?",
}


@pytest.mark.parametrize("address", SECRETS)
def test_secrets_leave_an_address(address):
    assert without_secrets(address) == SECRETS[address]
    assert without_secrets(f"cannot open '{address}': no") == f"cannot open '{SECRETS[address]}': no"


@pytest.mark.parametrize("address", [one for one in SECRETS if "wJ" in one])
@pytest.mark.parametrize("ending", ["parquet", "state", "npz"])
def test_no_command_prints_a_secret(address, ending, capsys):
    address = address.replace(".parquet", f".{ending}")
    for words in (
        ["score", address],
        ["audit", address, "--json"],
        ["report", address],
        ["merge", address, "-o", "a.state"],
        ["compare-files", address],
        ["calibrate", address, "-o", "c.json"],
        ["audit", "x.csv", "--against", address],
        ["score", "x.csv", "--bins", address],
    ):
        assert main(words) == 2
        captured = capsys.readouterr()
        assert "K7" not in captured.out + captured.err, words
        assert "wJ" not in captured.out + captured.err, words


def test_no_error_in_python_holds_a_secret():
    for address in SECRETS:
        if "wJ" in address:
            with pytest.raises((DataError, ImportError)) as caught:
                read_predictions(address)
            assert "wJ" not in str(caught.value)
            assert "K7" not in str(caught.value)


STEERING = "a\x1b[2Jb\x1b]0;t\x07\u202ec\rd\ne\x9b1m"


def test_control_characters_are_written_out():
    assert visible(STEERING).isprintable()
    assert visible("päper 東京") == "päper 東京"


def test_the_output_of_commands_keeps_colors_only():
    stream = io.StringIO()
    safe_stream(stream).write(f"\x1b[1mbold\x1b[0m\t{STEERING}\n")
    assert stream.getvalue() == ("\x1b[1mbold\x1b[0m\ta\\x1b[2Jb\\x1b]0;t\\x07\\u202ec\\rd\ne\\x9b1m\n")


def test_names_from_a_file_do_not_steer_the_terminal(tmp_path, capsys):
    path = tmp_path / "x\x1b[31m.csv"
    path.write_text("label,prob_0,prob_1,group_a\x1b[31m\n" + "0,0.9,0.1,\x1b[2J\u202ex\n" * 60)
    assert main(["audit", str(path), "--resamples", "20"]) in (0, 2)
    assert main(["score", str(path), "--resamples", "20"]) in (0, 2)
    assert main(["score", str(tmp_path / "missing\x1b[31m\n.csv")]) == 2
    assert main(["score", "x.csv", "y.csv", "--bins", "\x1b[31m"]) == 2
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_names_of_classes_do_not_steer_the_terminal():
    rows = Predictions(probs=np.full((90, 3), 1 / 3), labels=[0] * 90, class_names=["a", "b\x1b[31m", "c\nd"])
    found = audit(rows, n_resamples=10)
    assert "\x1b" not in str(found)
    assert all(caution.text.isprintable() for caution in found.cautions)


NAMES = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", r"a\b_c & 5% $x$ <b>|</b>", "\x1b[31mred\nline"]


@pytest.fixture(scope="module")
def tables():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 40)
    runs = {
        name: [Predictions(probs=generator.random(40), labels=labels) for _ in range(2)] for name in NAMES
    }
    table = compare_seeds(runs, n_resamples=20).table
    return {style: format_table(table, style) for style in ("text", "markdown", "latex", "csv")}


def test_tables_hold_no_control_characters(tables):
    for text in tables.values():
        assert text.replace("\n", "").isprintable()


def test_a_csv_table_holds_no_formula(tables):
    rows = list(csv.DictReader(io.StringIO(tables["csv"])))
    names = {row["method"] for row in rows}
    assert {name[0] for name in names}.isdisjoint("=+-@")
    assert f"'{NAMES[0]}" in names
    assert all(isinstance(float(row["mean"]), float) for row in rows)
    assert csv_cell(-1.5) == -1.5
    assert csv_cell("-1.5") == "-1.5"
    assert csv_cell("\t=1") == "\\t=1"


def test_a_markdown_table_has_one_cell_per_column(tables):
    lines = [line for line in tables["markdown"].splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert len(lines) == 2 + len(NAMES) * (len(lines) - 2) // len(NAMES)
    assert r"\<b\>\|\</b\>" in tables["markdown"]
    assert markdown_text("a_b|c`d`") == r"a\_b\|c\`d\`"


def test_a_latex_table_escapes_every_special_letter(tables):
    assert latex_text(NAMES[4]) == r"a\textbackslash{}b\_c \& 5\% \$x\$ $<$b$>$|$<$/b$>$"
    assert latex_text(NAMES[4]) in tables["latex"]
