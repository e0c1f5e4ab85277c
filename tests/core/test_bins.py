"""The rule of bins: every number is compared with k/n, in the precision in which it was given."""

import numpy as np
import pytest
import torch

from equipoise import Predictions, read_predictions
from equipoise.calibrators import HistogramBinning
from equipoise.calibrators.temperature_search import ece_on_grid
from equipoise.core.bins import bin_edges, bin_of, bin_of_share, expected_error, lower_edges
from equipoise.core.predictions.combine import concatenate
from equipoise.evaluate import score_by_class
from equipoise.losses.adafocal import GammaBins
from equipoise.metrics import CalibrationState, expected_calibration_error
from helpers.backends import go

# Numbers on the edges, and their neighbors on both sides.
EDGES = np.arange(16) / 15
NEAR = np.clip(np.concatenate([EDGES, np.nextafter(EDGES, 2), np.nextafter(EDGES, -1)]), 0, 1)


@pytest.fixture(params=["compiled", "fallback"])
def way(request):
    yield from go(request.param)


@pytest.mark.parametrize("closed", ["left", "right"])
def test_edges_with_a_side_place_numbers_as_the_side_says(closed):
    inner = lower_edges(15, closed)[1:-1]
    assert bin_of(NEAR, inner).tolist() == bin_of(NEAR, EDGES[1:-1], closed=closed).tolist()
    assert bin_of(torch.tensor(NEAR), torch.tensor(inner)).tolist() == bin_of(NEAR, inner).tolist()


def test_every_row_may_have_edges_of_its_own():
    edges = torch.tensor([[0.2, 0.4], [0.6, float("inf")]])
    values = torch.tensor([[0.1, 0.2, 0.3, 0.9]]).repeat(2, 1)
    assert bin_of(values, edges).tolist() == [[0, 0, 1, 2], [0, 0, 0, 1]]
    assert bin_of(values, edges, closed="left").tolist() == [[0, 1, 1, 2], [0, 0, 0, 1]]
    assert bin_of(values.T.contiguous().T, edges).tolist() == bin_of(values, edges).tolist()


def test_an_expected_error_by_hand():
    gaps = np.array([[-0.5, 1.0], [0.0, 0.25]])
    assert expected_error(gaps, np.array([4.0, 1.0])).tolist() == [0.375, 0.25]


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.usefixtures("way")
def test_slices_have_the_bins_of_the_metric(closed):
    confidence = np.repeat(NEAR, 40)
    right = np.arange(len(confidence)) % 3 == 0
    rows = Predictions(
        predicted=np.zeros(len(right), int), labels=np.where(right, 0, 1), confidence=confidence
    )
    (found,) = score_by_class(rows, closed=closed)
    assert found.ece == pytest.approx(expected_calibration_error(rows, closed=closed), abs=1e-12)


@pytest.mark.usefixtures("way")
def test_the_grid_of_temperatures_has_the_bins_of_the_metric():
    # Off the edges, where the last bit of an exponential does not decide; some bins are empty.
    shares = np.repeat(EDGES[9:-1] + 0.01, 40)
    logits = np.stack([np.log(shares) - np.log1p(-shares), np.zeros_like(shares)], axis=1)
    labels = (np.arange(len(shares)) % 3 == 0).astype(int)
    _, found = ece_on_grid(logits, labels, None, n_bins=15, grid=np.array([1.0, 2.0]))
    for temperature, ece in zip((1.0, 2.0), found, strict=True):
        confidence = 1 / np.exp((logits - logits.max(1, keepdims=True)) / temperature).sum(1)
        place = bin_of(confidence, lower_edges(15, "right")[1:-1])
        gaps = np.bincount(place, confidence - (logits.argmax(1) == labels), minlength=15)
        assert ece == pytest.approx(float(expected_error(gaps, len(labels))), abs=1e-12)


PRECISIONS = {"float64": np.float64, "float32": np.float32, "float16": np.float16}


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_kth_of_n_lies_on_its_edge(precision, closed):
    for n_bins in range(1, 201):
        numbers = (np.arange(n_bins + 1) / n_bins).astype(PRECISIONS[precision])
        bins = np.arange(n_bins + 1) - (closed == "right")
        want = bins.clip(0, n_bins - 1).tolist()
        inner = lower_edges(n_bins, closed, precision)[1:-1]
        assert bin_of(numbers.astype(np.float64), inner).tolist() == want
        assert bin_of(torch.from_numpy(numbers).double(), torch.from_numpy(inner)).tolist() == want
        if closed == "right":
            continue
        below = np.nextafter(
            numbers[1:-1], np.float16(0) if precision == "float16" else numbers.dtype.type(0)
        )
        assert bin_of(below.astype(np.float64), inner).tolist() == list(range(n_bins - 1))


def test_tenths_are_edges():
    """The bins that edges by linspace got wrong."""
    rows = Predictions(predicted=[0] * 3, confidence=[0.3, 0.6, 0.7], labels=[0] * 3)
    weight = CalibrationState.of(rows, n_bins=10, closed="left").curve().weight
    assert np.flatnonzero(weight).tolist() == [3, 6, 7]
    for k, n in ((5, 7), (5, 12)):
        rows = Predictions(predicted=[0], confidence=[k / n], labels=[0])
        assert np.flatnonzero(CalibrationState.of(rows, n_bins=n).curve().weight).tolist() == [k - 1]


FORMS = {
    "top-1": lambda share: {"predicted": np.ones(len(share), int), "confidence": share},
    "two columns": lambda share: {"probs": np.stack([1 - share, share], axis=1)},
    "three columns": lambda share: {"probs": np.stack([1 - share, share, 0 * share], axis=1)},
}


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.usefixtures("way")
def test_numbers_stored_in_less_precision_have_the_same_bins(form, closed):
    for n_bins in (3, 7, 10, 15, 20, 49):
        share = np.arange(n_bins // 2 + 1, n_bins + 1) / n_bins
        counts = []
        for dtype in (np.float64, np.float32, np.float16):
            given, labels = FORMS[form](share.astype(dtype)), np.ones(len(share), int)
            rows = Predictions(**given, labels=labels)
            state = CalibrationState.of(rows, n_bins=n_bins, closed=closed)
            (part,) = score_by_class(rows, n_bins=n_bins, closed=closed)
            assert part.ece == pytest.approx(state.curve().expected_error(), abs=1e-12)
            counts.append(state.sums.rows.tolist())
        assert counts[0] == counts[1] == counts[2]


def test_a_csv_file_and_a_float32_file_of_the_same_numbers_have_the_same_bins(tmp_path):
    share = np.arange(11, 21) / 20
    np.savez(tmp_path / "a.npz", probs=share.astype(np.float32), labels=np.ones(10, int))
    lines = ["prob,label", *(f"{value:.2f},1" for value in share)]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    states = [
        CalibrationState.of(read_predictions(tmp_path / name, **columns), n_bins=20)
        for name, columns in (("a.npz", {}), ("a.csv", {"probs": "prob", "labels": "label"}))
    ]
    assert states[0].sums.rows.tolist() == states[1].sums.rows.tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_histogram_is_fitted_with_the_bins_of_the_metric(dtype):
    share = np.repeat(np.arange(6, 11) / 10, 10)
    probs = np.stack([1 - share, share], axis=1).astype(dtype)
    rows = Predictions(probs=probs, labels=np.tile([1] * 7 + [0] * 3, 5))
    fitted = HistogramBinning(n_bins=10).fit(rows)
    np.testing.assert_allclose(fitted.result.parameters["values"][1, 5:], 0.7)


def test_parts_keep_the_precision_they_were_given_in():
    part = Predictions(probs=np.float16([[0.3, 0.7]]), labels=[1])
    assert part.precision == part.take([0]).precision == concatenate([part, part]).precision == "float16"
    assert concatenate([part, Predictions(probs=np.array([[0.3, 0.7]]), labels=[1])]).precision == "float64"
    assert Predictions(logits=np.float16([[0.3, 0.7]]), labels=[1]).precision == "float64"


def test_adafocal_has_the_same_edges():
    assert GammaBins(n_bins=10).edges.tolist() == bin_edges(10, "float32").tolist()


@pytest.mark.parametrize("precision", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("n_bins", [1, 2, 15, 1000, 10_000])
def test_shares_have_the_same_bins_as_other_numbers(precision, closed, n_bins):
    edges = lower_edges(n_bins, closed, precision)
    inner = np.clip(edges[1:-1], 0, 1)
    shares = np.concatenate(
        [NEAR, inner, np.nextafter(inner, 2), np.nextafter(inner, -1), [0, 1], [1 + 1e-7]]
    )
    assert (bin_of_share(shares, edges) == bin_of(shares, edges[1:-1])).all()
