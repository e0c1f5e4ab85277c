"""The notebooks run from top to bottom, and what they show is what they keep."""

from pathlib import Path

import pytest

from helpers.daily import daily
from helpers.scripts import load_script

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
notebooks = load_script("tools/docs/run_notebooks.py")


def test_there_is_one_for_each_step():
    assert {path.stem for path in NOTEBOOKS} == {"audit", "calibrate", "train"}


@pytest.mark.parametrize(
    "path", daily(NOTEBOOKS, keep=[p for p in NOTEBOOKS if p.stem != "train"]), ids=lambda path: path.stem
)
def test_runs_and_its_output_is_fresh(path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    kept = notebooks.read(path)
    assert kept["nbformat"] == 4
    assert notebooks.shape(notebooks.run(kept)) == notebooks.shape(kept), (
        "run python tools/docs/run_notebooks.py"
    )


def test_an_error_in_a_cell_is_an_error():
    cell = {"cell_type": "code", "source": ["print(1)\n", "1 / 0"], "metadata": {}}
    with pytest.raises(ZeroDivisionError):
        notebooks.run({"cells": [cell]})


def test_what_a_cell_shows_is_kept_in_order():
    sources = [["a = 2\n", "print('x')\n", "a + 1"], ["a;"], ["None"]]
    cells = [{"cell_type": "code", "source": source, "metadata": {}} for source in sources]
    shown = notebooks.run({"cells": cells})["cells"]
    assert [output["output_type"] for output in shown[0]["outputs"]] == ["stream", "execute_result"]
    assert shown[0]["outputs"][1]["data"] == {"text/plain": ["3"]}
    assert shown[1]["outputs"] == shown[2]["outputs"] == []


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("ece  -0.21  0.034   better", True),
        ("ece  +0.20  &lt;0.001  worse", True),
        ("nll  +0.20  0.300  tie", False),
        ("ece  +0.20  0.300  tied", False),
    ],
)
def test_numbers_and_verdicts_are_not_compared_and_other_words_are(other, same):
    kept, found = (
        notebooks.shape({"cells": [{"cell_type": "code", "outputs": [{"text": [text]}]}]})
        for text in ("ece  +0.20  0.300  tie", other)
    )
    assert (kept == found) == same
