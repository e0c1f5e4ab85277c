"""What a notebook shows of the objects people hold in their hands: whole tables, with nothing unescaped."""

from html.parser import HTMLParser

import numpy as np
import pytest

from equipoise import Predictions, score
from equipoise.calibrators import TemperatureScaling, VectorScaling, choose
from equipoise.evaluate import audit, compare
from equipoise.training import History

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


class Page(HTMLParser):
    """The cells of a page, which must be well formed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.rows = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in {"p", "table", "thead", "tbody", "tr", "th", "td"}
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

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
