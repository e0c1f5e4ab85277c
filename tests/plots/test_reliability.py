"""The reliability diagram draws its record, no more and no less."""

import numpy as np
import pytest

from equipoise import Predictions, score
from equipoise.evaluate import audit
from equipoise.metrics import ReliabilityCurve, reliability_curve, smooth_curve
from equipoise.plots import draw_confidence_histogram, draw_reliability, draw_reliability_diagrams


@pytest.fixture
def curve():
    # bins: empty, overconfident, empty, underconfident, certain and right
    return ReliabilityCurve(
        np.array([0.0, 10, 0, 20, 4]), np.array([0.0, 3.5, 0, 14, 3.9]), np.array([0.0, 2, 0, 19, 4])
    )


def bars(container):
    return np.array([[bar.get_x(), bar.get_y(), bar.get_height()] for bar in container])


def test_bars_are_the_frequencies_of_bins_with_rows(curve):
    drawn = bars(draw_reliability(curve).containers[0])
    np.testing.assert_allclose(drawn[:, 0], [0.2, 0.6, 0.8])
    np.testing.assert_allclose(drawn[:, 2], [0.2, 0.95, 1.0])


def test_gaps_reach_from_frequency_to_confidence_and_tell_their_direction(curve):
    ax = draw_reliability(curve)
    gaps = ax.containers[1]
    np.testing.assert_allclose(bars(gaps)[:, 1] + bars(gaps)[:, 2], [0.35, 0.7, 0.975])
    hatches = [bar.get_hatch() for bar in gaps]
    assert hatches[0] != hatches[1] == hatches[2]


def test_whiskers_are_the_intervals_of_the_record(curve):
    ax = draw_reliability(curve, level=0.9)
    low, high = curve.intervals(level=0.9)
    segments = np.array(ax.containers[2].lines[2][0].get_segments())
    np.testing.assert_allclose(segments[:, 0, 1], low[curve.weight > 0])
    np.testing.assert_allclose(segments[:, 1, 1], high[curve.weight > 0])


def test_the_line_joins_confidence_and_frequency(curve):
    line = draw_reliability(curve).lines[-1]
    np.testing.assert_allclose(line.get_xydata(), [[0.35, 0.2], [0.7, 0.95], [0.975, 1.0]])


def test_the_smooth_version_and_its_band_are_drawn_over_the_bars():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 500)
    rows = Predictions(probs=confidence, labels=(rng.random(500) < confidence).astype(int))
    smooth = smooth_curve(rows, n_resamples=20)
    ax = draw_reliability(reliability_curve(rows), smooth=smooth)
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), smooth.frequency)
    band = ax.collections[-1].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(np.nanmax(smooth.high))


def test_histogram_counts_rows_and_marks_both_means(curve):
    ax = draw_confidence_histogram(curve)
    np.testing.assert_allclose(bars(ax.containers[0])[:, 2], [10, 20, 4])
    assert [text.get_text() for text in ax.texts] == ["10", "20", "4"]
    means = [line.get_xdata()[0] for line in ax.lines]
    np.testing.assert_allclose(means, [21.4 / 34, 25 / 34])
    assert all(line.get_linestyle() != "-" for line in ax.lines)


def test_large_counts_stay_short():
    huge = ReliabilityCurve(np.array([1_234_567.0]), np.array([1e6]), np.array([1e6]))
    assert draw_confidence_histogram(huge).texts[0].get_text() == "1.23M"


def test_models_stand_side_by_side_with_their_histograms(curve):
    figure = draw_reliability_diagrams({"before": curve, "after": curve})
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["before", "after", "", ""]
    assert figure.axes[0].texts[0].get_text() == f"ECE {100 * curve.expected_error():.1f}%"
    figure.draw_without_rendering()
    upper, lower = figure.axes[0].get_position(), figure.axes[2].get_position()
    assert upper.x0 == pytest.approx(lower.x0, abs=0.01)
    assert upper.width == pytest.approx(lower.width, abs=0.01)


def test_draws_on_the_given_axes(curve):
    ax = draw_reliability(curve)
    assert draw_reliability(curve, ax=ax) is ax


def test_an_empty_mapping_is_refused():
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_reliability_diagrams({})


def test_what_people_hold_in_their_hand_is_drawn():
    rows = Predictions(probs=[[0.9, 0.1]] * 4 + [[0.6, 0.4]] * 4, labels=[0, 0, 0, 1] * 2)
    heights = [
        [float(bar.get_height()) for bar in draw_reliability(held).containers[0]]
        for held in (reliability_curve(rows), rows, score(rows, n_resamples=5), audit(rows, n_resamples=5))
    ]
    assert heights == [heights[0]] * 4 == [[0.75, 0.75]] * 4
