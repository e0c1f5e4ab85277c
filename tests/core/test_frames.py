"""Data frames where arrays are taken, and where tables are given."""

import sys

import numpy as np
import pandas as pd
import pytest

from equipoise import Predictions, metrics, score
from equipoise.calibrators import TemperatureScaling
from equipoise.core.arrays import as_numpy
from equipoise.core.errors import MissingExtraError
from equipoise.evaluate import audit
from equipoise.experiments.results.means import Cell
from equipoise.experiments.results.tables import ResultTable, TableRow

PROBS = pd.DataFrame({"cat": [0.9, 0.2, 0.4], "dog": [0.1, 0.8, 0.6]}, index=[5, 6, 7])
LABELS = pd.Series([0, 1, 0], index=[5, 6, 7])


@pytest.mark.parametrize("kind", ["float64", "float32", "Float64", "Float32", object, "float64[pyarrow]"])
def test_scores_of_every_type(kind):
    found = Predictions(probs=PROBS.astype(kind), labels=LABELS, class_names=PROBS.columns)
    np.testing.assert_allclose(found.probs, PROBS.to_numpy(), rtol=1e-6)
    assert found.class_names == ("cat", "dog")


@pytest.mark.parametrize("kind", ["int64", "Int64", "uint8", "category", object, "int64[pyarrow]"])
def test_labels_of_every_type(kind):
    assert Predictions(probs=PROBS, labels=LABELS.astype(kind)).labels.tolist() == [0, 1, 0]


def test_groups_ids_and_weights():
    groups = pd.DataFrame(
        {"site": ["x", "y", "x"], "ward": pd.Categorical(["a", "b", "a"]), "age": [1, 2, 3]}
    )
    found = Predictions(
        probs=PROBS,
        labels=LABELS,
        groups=groups,
        ids=pd.Series(["p", "q", "r"]),
        weights=pd.Series([1, 2, 3]),
    )
    assert {name: column.tolist() for name, column in found.groups.items()} == {
        "site": ["x", "y", "x"],
        "ward": ["a", "b", "a"],
        "age": [1, 2, 3],
    }
    assert found.rows.shared(Predictions(probs=[0.5], labels=[0], ids=["q"]).rows) == 1
    assert found.weights.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": pd.Series([0, 1, None], dtype="Int64")}, "`labels` must hold integer.*Missing values"),
        (
            {"probs": PROBS.astype("Float64").mask(PROBS > 0.85)},
            "`probs` must hold real numbers.*Missing values",
        ),
        ({"probs": PROBS.assign(dog="x")}, "`probs` must hold real numbers.*Missing values or text"),
        ({"labels": LABELS.astype(str)}, "Pass class_names="),
        ({"labels": LABELS.iloc[::-1]}, r"`labels` has the index of `probs` in another order.*labels\.loc"),
        ({"groups": pd.DataFrame({"a": [[1], [1, 2], []]})}, r"`groups\['a'\]` must hold numbers or text"),
    ],
)
def test_mistakes(arguments, message):
    with pytest.raises((TypeError, ValueError), match=f"^Predictions: .*{message}"):
        Predictions(**({"probs": PROBS, "labels": LABELS} | arguments))


def test_labels_may_keep_the_index_of_their_table():
    shuffled = Predictions(probs=PROBS.reset_index(drop=True), labels=LABELS.set_axis([70, 3, 9]))
    assert shuffled.labels.tolist() == [0, 1, 0]


def test_metrics_and_calibrators_take_them():
    logits = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)))
    labels = pd.Series(np.arange(60) % 3)
    wanted = TemperatureScaling().fit(logits.to_numpy(), labels.to_numpy())
    found = TemperatureScaling().fit(logits, labels)
    np.testing.assert_array_equal(found(logits), wanted(logits.to_numpy()))
    assert metrics.accuracy(PROBS, LABELS) == pytest.approx(2 / 3)


class Other:
    """A column of another package, known only by the protocol that NumPy asks for."""

    def __init__(self, values):
        self._values = np.array(values, object)

    def __array__(self, dtype=None, copy=None):
        return self._values


@pytest.mark.parametrize(
    ("values", "kind"), [([1, 2], "i"), ([0.5, 1], "f"), (["a", "b"], "U"), (["a", 1], "O")]
)
def test_objects_of_one_kind_get_its_type(values, kind):
    assert as_numpy(Other(values)).dtype.kind == kind


def rows(n=60):
    return Predictions(probs=np.linspace(0, 1, n), labels=np.arange(n) % 2, groups={"site": np.arange(n) % 2})


def table():
    cell = Cell(mean=0.5)
    row = TableRow(
        method="ce", calibrator="identity", fidelity="", cells={"ece": cell}, marks={"ece": "best"},
        versus={"ece": "tie"}, printed={},
    )  # fmt: skip
    return ResultTable(
        data="d", model="m", baseline="ce", metrics=("ece",), rows=(row,), n_seeds=1, n_test=9, n_bins=15
    )


def test_tables_are_given_as_frames():
    card, found = score(rows(), n_resamples=5), audit(rows(), n_resamples=5)
    frame = card.to_frame().set_index("metric")
    assert list(frame.index) == list(card)
    assert frame["low"]["ece"] == card["ece"].low
    slices = found.to_frame()
    assert slices.groupby("by")["n_samples"].sum().to_dict() == {"predicted class": 60, "site": 60}
    assert table().to_frame().loc[0, ["method", "metric", "mean", "mark"]].tolist() == [
        "ce",
        "ece",
        0.5,
        "best",
    ]


@pytest.mark.parametrize(
    "made", [lambda: score(rows(), n_resamples=5), lambda: audit(rows(), n_resamples=5), table]
)
def test_without_pandas_the_command_that_installs_it_is_reported(made, monkeypatch):
    given = made()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        MissingExtraError, match=r"pandas is needed to make a data frame.*equipoise\[pandas\]"
    ):
        given.to_frame()


@pytest.mark.integrations
def test_frames_of_polars():
    polars = pytest.importorskip("polars")
    frame, labels = polars.DataFrame({"cat": [0.9, 0.2], "dog": [0.1, 0.8]}), polars.Series([0, 1])
    groups = polars.DataFrame({"site": ["x", "y"], "day": [1, 2]})
    found = Predictions(probs=frame, labels=labels, groups=groups, weights=polars.Series([1.0, 2.0]))
    np.testing.assert_array_equal(found.probs, [[0.9, 0.1], [0.2, 0.8]])
    assert {name: column.tolist() for name, column in found.groups.items()} == {
        "site": ["x", "y"],
        "day": [1, 2],
    }
    top1 = Predictions(predicted=polars.Series([1, 0]), confidence=frame["cat"], labels=labels)
    assert top1.confidence.tolist() == [0.9, 0.2]
    assert TemperatureScaling().fit(frame, labels).fitted
