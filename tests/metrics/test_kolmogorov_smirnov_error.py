import numpy as np
import pytest
from hypothesis import given

from equipoise.metrics import confidence_gap, kolmogorov_smirnov_error
from helpers.metric_samples import draw, rows, top_label


def test_value_by_hand():
    # Ascending: 0.6 wrong (+0.6), 0.9 right (-0.1): sums 0.6, 0.5 over two rows.
    assert kolmogorov_smirnov_error([[0.9, 0.1], [0.6, 0.4]], [0, 1]) == pytest.approx(0.3)


@given(rows())
def test_equals_the_loop(sample):
    confidence, correct = top_label(*sample)
    pairs = list(zip(confidence, correct, strict=True))
    want = max(abs(sum(c - a for c, a in pairs if c <= t)) for t in confidence) / len(pairs)
    assert kolmogorov_smirnov_error(*sample) == pytest.approx(want, abs=1e-12)


def test_of_a_model_that_is_over_confident_everywhere_is_its_gap():
    probs, _ = draw(300)
    wrong = probs.argmin(1)
    assert kolmogorov_smirnov_error(probs, wrong) == pytest.approx(confidence_gap(probs, wrong))


def test_rows_of_equal_confidence_cancel_in_any_order():
    probs = [[0.5, 0.5]] * 10
    assert kolmogorov_smirnov_error(probs, [0, 1] * 5) == pytest.approx(0.0)
    assert kolmogorov_smirnov_error(probs, [0] * 5 + [1] * 5) == pytest.approx(0.0)


def test_falls_with_the_root_of_the_rows_for_a_calibrated_model():
    errors = [kolmogorov_smirnov_error(*draw(n, sharpness=1.0, seed=3)) for n in (400, 40_000)]
    assert errors[1] < 0.5 * errors[0]
    assert np.isfinite(errors).all()


def test_refuses_missing_labels():
    with pytest.raises(TypeError, match="Pass \\(probs, labels\\)"):
        kolmogorov_smirnov_error([[0.9, 0.1]])
