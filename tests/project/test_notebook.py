"""What a notebook shows of the objects people hold in their hands: whole tables, with nothing unescaped."""

from html.parser import HTMLParser

import numpy as np
import pytest

from equipoise import Predictions, score
from equipoise.calibrators import TemperatureScaling, VectorScaling, choose
from equipoise.core import SpecError
from equipoise.evaluate import audit, compare
from equipoise.experiments import compare_seeds
from equipoise.losses import MMCE, DualFocalLoss, FocalLoss
from equipoise.plots import draw_reliability
from equipoise.report import write_report
from equipoise.training import History
from helpers.scripts import load_script

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(300, 3)) * 2
LABELS = (LOGITS + RNG.gumbel(size=LOGITS.shape)).argmax(1)
ROWS = Predictions(
    logits=3 * LOGITS,
    labels=LABELS,
    class_names=["<b>", "b & c", "d"],
    groups={"<site>": np.array(["<i>", "j"])[np.arange(300) % 2]},
    weights=np.ones(300),
)
SEEDS = compare_seeds({"<a>": [ROWS], "b": [ROWS.with_scores(logits=LOGITS)]}, n_resamples=5)

#: What people do in a notebook, a cell each, and what they must see.
CELLS = {
    "import numpy as np\nfrom equipoise import Predictions, score\nfrom equipoise.evaluate import audit": "",
    "rng = np.random.default_rng(0)\nlogits, labels = rng.normal(size=(90, 3)), rng.integers(0, 3, 90)": "",
    "rows = Predictions(logits=logits, labels=labels, groups={'site': labels % 2})\nrows": "and 85 more rows",
    "card = score(rows, n_resamples=9)\ncard": "classwise ECE",
    "audit(rows, n_resamples=9)": "site",
    "from equipoise.calibrators import TemperatureScaling\nTemperatureScaling().fit(rows).result": "temperature",
    "from equipoise.training import History\nHistory([{'epoch': 0, 'loss': 1.5}])": "History of 1 epochs",
    "from equipoise import compare_seeds\ncompare_seeds({'a': [rows], 'b': [rows]}, n_resamples=9).table": "method",
}


class Page(HTMLParser):
    """The cells of a page, which must be well formed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.rows = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in {"p", "table", "thead", "tbody", "tr", "th", "td", "b"}
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def everything(self):
        return [*self.words, *(cell for row in self.rows for cell in row)]

    def handle_data(self, text):
        (self.rows[-1] if "tr" in self.open else self.words).append(text)


@pytest.mark.parametrize(
    "shown",
    [
        ROWS,
        Predictions(probs=[0.9, 0.2]),
        History(),
        TemperatureScaling().fit(ROWS).result,
        choose(ROWS, candidates=["temperature"]),
        score(ROWS, n_resamples=5),
        audit(ROWS, n_resamples=5),
        compare(ROWS, ROWS.with_scores(logits=LOGITS), n_resamples=5),
        SEEDS,
        SEEDS.table,
    ],
    ids=lambda shown: type(shown).__name__,
)
def test_every_page_is_well_formed(shown):
    assert Page(shown._repr_html_())


def test_the_first_rows_of_predictions_are_shown():
    page = Page(ROWS._repr_html_())
    assert page.words == ["Predictions(logits, n=300, k=3)", "and 295 more rows"]
    assert page.rows[0] == ["row", "predicted", "label", "confidence", "weight", "<site>"]
    assert len(page.rows) == 6
    first = page.rows[1]
    assert first[1:3] == [ROWS.class_names[ROWS.predicted[0]], ROWS.class_names[LABELS[0]]]
    assert first[-1] == "<i>"
    assert "label" not in Page(Predictions(probs=[0.9, 0.2])._repr_html_()).rows[0]


def test_the_last_epochs_of_a_history_are_shown():
    history = History([{"epoch": number, "loss": 1 / (1 + number)} for number in range(30)])
    history.add({"epoch": 30})
    page = Page(history._repr_html_())
    assert page.words[0] == "History of the last 20 of 31 epochs"
    assert page.rows[:2] == [["epoch", "loss"], ["11", "0.083333"]]
    assert len(page.rows) == 21
    assert page.rows[-1] == ["30"]


def test_what_a_fit_found_is_shown():
    found = TemperatureScaling().fit(ROWS).result
    page = Page(found._repr_html_())
    assert page.words[0] == found.words
    assert ["temperature", f"{float(found.parameters['temperature']):.6g}"] in page.rows
    rows = Page(VectorScaling().fit(ROWS).result._repr_html_()).rows
    assert any(cells[-1] == "3 numbers, shape (3,)" for cells in rows)


def test_a_notebook_shows_the_pages():
    notebooks = load_script("tools/docs/run_notebooks.py")
    cells = [{"cell_type": "code", "metadata": {}, "source": [source]} for source in CELLS]
    shown = notebooks.run({"cells": cells})["cells"]
    for cell, wanted in zip(shown, CELLS.values(), strict=True):
        if not wanted:
            assert cell["outputs"] == []
            continue
        [output] = cell["outputs"]
        assert wanted in " ".join(Page("".join(output["data"]["text/html"])).everything())
        assert len("".join(output["data"]["text/plain"])) < 4000


def test_what_people_write_of_a_scorecard():
    card = score(ROWS, n_resamples=5)
    assert float(card["ece"]) == card["ece"].value
    assert list(card)[:2] == ["accuracy", "nll"]
    assert {name: card[name] for name in card} == dict(card.scores)
    assert len(repr(card)) < 200
    with pytest.raises(SpecError, match="did you mean 'ece'"):
        card["eec"]


def test_what_people_hold_in_their_hand_is_drawn_and_reported(tmp_path):
    assert draw_reliability(ROWS).axes
    write_report(ROWS, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_modules_name_their_parameters():
    assert repr(DualFocalLoss(gamma=5)).startswith("DualFocalLoss(gamma=5")
    both = repr(FocalLoss() + 0.5 * MMCE())
    assert all(told in both for told in ("gamma=3", "factor=0.5", "width=0.4"))
