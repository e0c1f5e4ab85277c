"""Confidences on an edge of a bin: every path puts them into the same bin."""

import itertools

import numpy as np
import pytest
import torch

from equipoise import Predictions
from equipoise.kernels.dispatch import use_backend, why_fallback
from equipoise.metrics import CalibrationState, accumulate
from equipoise.metrics.sums import Sums

BACKENDS = ["fallback"] if why_fallback() else ["fallback", "compiled"]
SIZES = [2, 3, 5, 7, 10, 13, 16, 24, 33, 40]


def tied(k, dtype):
    """Rows of k logits in which the largest m are equal, for every m; labels hit, tie and miss."""
    rows, labels = [], []
    for m, low in itertools.product(range(1, k + 1), (-1e4, -9.0)):
        logits = np.full(k, low)
        logits[np.random.default_rng(m).permutation(k)[:m]] = 1.5
        rows += [logits] * 3
        labels += [int(logits.argmax()), int(np.flatnonzero(logits == 1.5)[-1]), int(logits.argmin())]
    return np.array(rows).astype(dtype), np.array(labels)


def shares_of(logits):
    exps = np.exp((logits - logits.max(axis=1, keepdims=True)).astype(np.float64))
    return (exps / exps.sum(axis=1, keepdims=True)).astype(logits.dtype)


def states(kind, scores, labels, n_bins, closed):
    """Return the state of the same rows by every path."""
    settings = {"n_bins": n_bins, "closed": closed}
    found, k = {}, scores.shape[1]
    layouts = {"C": scores, "F": np.asfortranarray(scores), "tensor": torch.from_numpy(scores)}
    for backend in BACKENDS:
        with use_backend(backend):
            for name, given in layouts.items():
                state = CalibrationState(k, **settings)
                state.update(**{kind: given}, labels=torch.from_numpy(labels) if name == "tensor" else labels)
                found[backend, name] = state
            for size in (1, 7):
                chunks = CalibrationState(k, **settings)
                for start in range(0, len(scores), size):
                    part = slice(start, start + size)
                    chunks.update(Predictions(**{kind: scores[part]}, labels=labels[part]))
                found[backend, f"chunks of {size}"] = chunks
    device = CalibrationState(k, **settings)
    device._update_on_device(
        torch.from_numpy(scores), torch.from_numpy(labels), None, None, is_logits=kind == "logits"
    )
    found["device"] = device
    rows = Predictions(**{kind: scores}, labels=labels)
    top1 = CalibrationState(0, **settings)
    top1.update(
        predicted=rows.predicted,
        confidence=rows.confidence.astype(rows.precision),
        labels=labels,
    )
    found["top-1"] = top1
    return found


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("k", SIZES)
def test_every_path_has_the_same_bins(k, dtype, kind):
    scores, labels = tied(k, dtype)
    if kind == "probs":
        scores = shares_of(scores)
    for n_bins in (1, 2, 3, 5, k, 7, 12, 15, 21, 30):
        for closed in ("right", "left"):
            first, *others = states(kind, scores, labels, n_bins, closed).items()
            for path, state in others:
                where = f"{path} and {first[0]}, {n_bins} bins closed on the {closed}"
                assert state.sums.rows.tolist() == first[1].sums.rows.tolist(), where
                assert state.curve().expected_error() == pytest.approx(
                    first[1].curve().expected_error(), abs=1e-6 if dtype != np.float64 else 1e-12
                ), where
                if path != "top-1":
                    np.testing.assert_allclose(
                        state.sums.classwise[..., 0],
                        first[1].sums.classwise[..., 0],
                        rtol=0,
                        atol=0,
                        err_msg=where,
                    )
                    np.testing.assert_allclose(state.sums.floats, first[1].sums.floats, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_number_of_threads_changes_no_bit(backend, monkeypatch):
    monkeypatch.setattr(accumulate, "_PART", 1000)
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(0, 3, (3000, 20)).astype(np.float32), rng.integers(0, 20, 3000)
    rows, found, before = Predictions(logits=logits, labels=labels), [], torch.get_num_threads()
    try:
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            with use_backend(backend):
                found.append(CalibrationState.of(rows).sums)
    finally:
        torch.set_num_threads(before)
    for sums in found[1:]:
        assert np.array_equal(sums.floats, found[0].floats)
        assert np.array_equal(sums.counts, found[0].counts)


def test_sums_are_written_only_where_their_shapes_say():
    sums = Sums(n_classes=3, n_bins=15, n_ranks=5, n_fine=8)
    with pytest.raises(ValueError, match="expected `counts` of shape"):
        sums.share(torch.zeros(3, dtype=torch.int64), torch.zeros(1, dtype=torch.float64))
