import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.metrics import expected_calibration_error, sweep_calibration_error
from helpers.metric_samples import draw, rows, top_label


def loop(confidence, correct, norm):
    ordered = sorted(zip(confidence, correct, strict=True))
    n, best = len(ordered), 0.0
    for b in range(1, n + 1):
        bounds = [round(i * n / b) for i in range(b + 1)]
        pieces = [ordered[low:high] for low, high in itertools.pairwise(bounds)]
        accuracy = [np.mean([a for _, a in piece]) for piece in pieces]
        if any(after < before - 1e-12 for before, after in itertools.pairwise(accuracy)):
            break
        gaps = [abs(np.mean([c - a for c, a in piece])) for piece in pieces]
        shares = [len(piece) / n for piece in pieces]
        power = 1 if norm == "l1" else 2
        best = sum(s * g**power for s, g in zip(shares, gaps, strict=True)) ** (1 / power)
    return best


def test_value_by_hand():
    # Accuracy rises from 0.6 (wrong) to 0.9 (right), so two bins: (0.6 + 0.1) / 2.
    assert sweep_calibration_error([[0.9, 0.1], [0.6, 0.4]], [0, 1]) == pytest.approx(0.35)


@given(rows(), st.sampled_from(["l1", "l2"]))
def test_equals_the_loop(sample, norm):
    want = loop(*top_label(*sample), norm)
    assert sweep_calibration_error(*sample, norm=norm) == pytest.approx(want, abs=1e-9)


def test_one_bin_is_the_plain_gap():
    sample = draw(100)
    found = sweep_calibration_error(*sample, max_bins=1)
    assert found == pytest.approx(expected_calibration_error(*sample, n_bins=1))


def test_a_model_without_mistakes_is_not_swept_bin_by_bin():
    probs, _ = draw(200_000, 2)
    found = sweep_calibration_error(probs, probs.argmax(1))
    assert found == pytest.approx(1 - probs.max(1).mean())


def test_refusals():
    with pytest.raises(ValueError, match="Use expected_calibration_error"):
        sweep_calibration_error(Predictions(probs=[0.9], labels=[1], weights=[2.0]))
    with pytest.raises(ValueError, match="'l1' or 'l2'"):
        sweep_calibration_error([[0.9, 0.1]], [0], norm="max")
