"""Every other figure draws the numbers of its record."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from equipoise import Predictions, plots, score
from equipoise.core.errors import DataError, SpecError
from equipoise.decisions import certify_threshold
from equipoise.evaluate import Score
from equipoise.losses.cals_alm import PENALTIES
from equipoise.metrics import (
    CalibrationState,
    SmoothCurve,
    TemperatureSweep,
    risk_coverage,
    rival_probability,
)
from equipoise.theory import GradientWeight, dual_focal_phi, focal_regions


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(300, 4))
    return Predictions(logits=logits, labels=(logits / 2 + rng.gumbel(size=logits.shape)).argmax(1))


def test_smooth_curve_and_the_gap_to_the_diagonal():
    grid = np.linspace(0, 1, 11)
    record = SmoothCurve(grid, grid**2, grid**2 - 0.1, grid**2 + 0.1, np.ones(11), 0.1, 0.95)
    ax = plots.draw_smooth_reliability(record, title="mine")
    np.testing.assert_allclose(ax.lines[1].get_ydata(), grid**2)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (pytest.approx(-0.1), pytest.approx(1.1))
    assert ax.get_title(loc="left") == "mine"


def test_heat_map_holds_the_gaps_and_leaves_empty_bins_empty(rows):
    curves = CalibrationState.of(rows).class_curves()
    ax = plots.draw_classwise(curves, class_names=["a", "b", "$c$", "d" * 99])
    drawn = ax.images[0].get_array()
    wanted = np.stack([curve.confidence - curve.frequency for curve in curves])
    np.testing.assert_allclose(drawn.filled(np.nan), wanted)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names[2] == r"\$c\$"
    assert len(names[3]) == 24


def test_heat_map_of_no_class_is_refused():
    with pytest.raises(ValueError, match="one curve per class"):
        plots.draw_classwise([])


def test_scatter_stands_at_its_scores_with_both_intervals(rows):
    card = score(rows, n_resamples=50)
    ax = plots.draw_accuracy_against_error({"mine": card})
    point, _, (across, up) = ax.containers[0]
    assert point.get_xydata().tolist() == [[100 * card["ece"].value, 100 * card["accuracy"].value]]
    np.testing.assert_allclose(
        across.get_segments()[0][:, 0], [100 * card["ece"].low, 100 * card["ece"].high]
    )
    np.testing.assert_allclose(
        up.get_segments()[0][:, 1], [100 * card["accuracy"].low, 100 * card["accuracy"].high]
    )


def test_scatter_refuses_an_unknown_metric(rows):
    with pytest.raises(SpecError, match="did you mean 'ece'"):
        plots.draw_accuracy_against_error({"mine": score(rows, n_resamples=5)}, metric="ecee")


def test_a_moving_average_takes_the_last_known_values_and_keeps_gaps():
    rows = [{"epoch": place, "loss": value} for place, value in enumerate([4.0, 2.0, None, 6.0]) if value]
    rows.insert(2, {"epoch": 2})
    thin, drawn = plots.draw_history({"ce": rows}, column="loss", smooth=2).lines
    np.testing.assert_allclose(thin.get_ydata(), [4.0, 2.0, np.nan, 6.0])
    np.testing.assert_allclose(drawn.get_ydata(), [4.0, 3.0, np.nan, 6.0])
    with pytest.raises(ValueError, match="`smooth` must be at least 1"):
        plots.draw_history({"ce": rows}, column="loss", smooth=0)


def test_an_exponential_average_weighs_older_epochs_less_and_keeps_gaps():
    rows = [{"epoch": 0, "loss": 4.0}, {"epoch": 1, "loss": 2.0}, {"epoch": 2}, {"epoch": 3, "loss": 6.0}]
    _, drawn = plots.draw_history({"ce": rows}, column="loss", ema=0.5).lines
    # Weights 1, then 1/2 and 1, then 1/8, 1/4 and 1: the gap takes part in the distance and in nothing else.
    np.testing.assert_allclose(drawn.get_ydata(), [4.0, (2 + 2) / 1.5, np.nan, (0.5 + 0.5 + 6) / 1.375])
    with pytest.raises(ValueError, match="`ema` must be at least 0 and below 1"):
        plots.draw_history({"ce": rows}, column="loss", ema=1.0)
    with pytest.raises(ValueError, match="exclude each other"):
        plots.draw_history({"ce": rows}, column="loss", ema=0.5, smooth=2)


def test_categories_of_a_hyperparameter_stand_in_their_order_and_both_splits_are_drawn():
    test = {"phr": Score(0.02, 0.01, 0.03), "p2": Score(0.04, 0.03, 0.05)}
    tune = {"phr": Score(0.01, 0.0, 0.02), "p2": Score(0.03, 0.02, 0.04)}
    [ax] = plots.draw_hyperparameter(
        {"ece": {"cals": test}}, tune={"ece": {"cals": tune}}, parameter="penalty"
    ).axes
    assert [text.get_text() for text in ax.get_xticklabels()] == ["phr", "p2"]
    handles, labels = ax.get_legend_handles_labels()
    drawn = {label: one.lines[0].get_xydata().tolist() for one, label in zip(handles, labels, strict=True)}
    assert drawn == {"cals, test": [[0.0, 2.0], [1.0, 4.0]], "cals, tune": [[0.0, 1.0], [1.0, 3.0]]}


@pytest.mark.parametrize(
    ("values", "scale"), [((1.0, 5.0), "linear"), ((0.001, 1.0), "log"), ((0.0, 1e-5, 1e-2), "symlog")]
)
def test_a_hyperparameter_over_decades_has_a_logarithmic_axis(values, scale):
    line = dict.fromkeys(values, Score(0.02, 0.01, 0.03))
    [ax] = plots.draw_hyperparameter({"ece": {"ce": line}}, parameter="weight_decay").axes
    assert ax.get_xscale() == scale
    assert ax.containers[0].lines[0].get_xdata().tolist() == list(values)


def test_history_draws_each_method_and_leaves_gaps():
    histories = {
        "ce": [{"epoch": 0, "tune_nll": 1.0}, {"epoch": 1}, {"epoch": 2, "tune_nll": 0.5}],
        "focal": [{"epoch": 0, "tune_nll": 2.0}],
    }
    ax = plots.draw_history(histories, column="tune_nll")
    assert ax.lines[0].get_xdata().tolist() == [1, 2, 3]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [1.0, np.nan, 0.5])
    assert ax.get_legend_handles_labels()[1] == ["ce", "focal"]


def test_a_single_epoch_is_visible():
    rows = [{"epoch": 0, "loss": 1.0, "rho_mean": 1.0, "rho_min": 1.0, "rho_max": 2.0}]
    for ax in (plots.draw_history({"ce": rows}, column="loss"), plots.draw_multipliers(rows, buffer="rho")):
        assert ax.lines[0].get_marker() == "o"
        assert all(tick == int(tick) for tick in ax.get_xticks())
    both = plots.draw_history({"ce": [*rows, {"epoch": 1, "loss": 0.5}]}, column="loss")
    assert both.lines[0].get_marker() == "None"


def test_history_refuses_an_unknown_column():
    with pytest.raises(SpecError, match="did you mean 'loss'"):
        plots.draw_history({"ce": [{"epoch": 0, "loss": 1.0}]}, column="lss")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_max_logits_that_differ_by_rounding_are_drawn(dtype):
    one = np.nextafter(dtype(3), dtype(4))
    rows = Predictions(logits=np.array([[3, 0], [one, 0]], dtype), labels=[0, 1])
    [outline] = plots.draw_max_logits({"ce": rows}).patches
    heights, edges, _ = outline.get_data()
    assert (np.diff(edges) > 0).all()
    assert (heights * np.diff(edges)).sum() == pytest.approx(1)


def test_max_logits_are_a_density_over_common_edges(rows):
    ax = plots.draw_max_logits({"one": rows, "two": rows.with_scores(logits=rows.logits / 2)}, n_bins=20)
    for patch, values in zip(ax.patches, (rows.logits.max(1), rows.logits.max(1) / 2), strict=True):
        heights, edges, _ = patch.get_data()
        np.testing.assert_allclose(heights, np.histogram(values, edges, density=True)[0])
        assert heights @ np.diff(edges) == pytest.approx(1)


def test_rivals_box_is_median_and_quartiles(rows):
    rivals = rival_probability(rows)
    ax = plots.draw_rivals({"ce": rivals})
    lines = [line.get_ydata() for line in ax.lines]
    assert any(np.allclose(line, np.median(rivals)) for line in lines)
    whisker = rivals[rivals <= np.quantile(rivals, 0.95)].max()
    assert any(np.isclose(line.max(), whisker) for line in lines)


def test_multipliers_show_mean_and_range():
    names = ("mean", "min", "max")
    history = [
        {"epoch": e, **{f"rho_{n}": v * e for n, v in zip(names, (2, 1, 4), strict=True)}} for e in range(3)
    ]
    ax = plots.draw_multipliers(history, buffer="rho")
    assert ax.lines[0].get_ydata().tolist() == [0, 2, 4]
    assert ax.collections[0].get_paths()[0].vertices[:, 1].max() == 8


def test_multipliers_of_a_loss_without_any_are_refused():
    with pytest.raises(DataError, match="Only losses that adapt"):
        plots.draw_multipliers([{"epoch": 0, "loss": 1.0}])


def test_gammas_mark_their_medians():
    ax = plots.draw_gammas({"epoch 1": np.array([1.0, 2, 3]), "epoch 2": np.array([4.0, 5, 9])})
    assert [line.get_xdata()[0] for line in ax.lines] == [2.0, 5.0]


def test_temperature_sweep_marks_both_lowest_points():
    record = TemperatureSweep(np.array([0.5, 1, 2]), np.array([0.3, 0.1, 0.2]), np.array([3.0, 2, 1]))
    ax = plots.draw_temperature_sweep(record)
    other = next(one for one in ax.figure.axes if one is not ax)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 100 * record.ece)
    assert ax.lines[1].get_xydata().tolist() == [[1.0, 10.0]]
    np.testing.assert_allclose(other.lines[0].get_ydata(), record.nll)
    assert other.lines[1].get_xydata().tolist() == [[2.0, 1.0]]


def test_risk_coverage_draws_the_curve(rows):
    curve = risk_coverage(rows)
    ax = plots.draw_risk_coverage({"ce": curve})
    np.testing.assert_allclose(ax.lines[0].get_xydata(), 100 * np.stack([curve.coverage, curve.risk], 1))


def test_phi_and_the_regions_of_focal_loss():
    ax = plots.draw_phi(gamma=3.0, rivals=[0.0, 0.2])
    line = next(one for one in ax.lines if one.get_label() == "dual focal, rival 0.2")
    q, phi = line.get_xydata().T
    np.testing.assert_allclose(phi, dual_focal_phi(q, 0.2, gamma=3.0))
    marks = focal_regions(gamma=3.0)
    over, under = ax.patches[:2]
    assert over.get_x() + over.get_width() == pytest.approx(marks.v_m)
    assert under.get_x() == pytest.approx(marks.v_uc)


def test_phi_is_the_papers_figure_with_its_marks_by_name():
    ax = plots.draw_phi()
    found = {(text.get_text(), *np.round(text.xy, 3).tolist()) for text in ax.texts}
    # phi = 1 + C - q - q log q for gamma = 1: its peak is at exp(-2), and it falls through 1 + C at exp(-1).
    assert found == {
        ("$v^m$", 0.135, 1.135),
        ("$v' = v^{uc}$", 0.368, 1.0),
        ("$v^m$", 0.135, 1.435),
        ("$v'$", 0.368, 1.3),
        ("$v^{uc}$", 0.604, 1.0),
    }


@pytest.mark.parametrize("penalty", ["phr", "p2", "p3"])
def test_penalties_vary_rho_and_the_multiplier(penalty):
    by_rho, by_multiplier, compared = plots.draw_penalties(
        penalty=penalty, rhos=[2.0], multipliers=[0.5]
    ).axes
    for ax, multiplier, rho in ((by_rho, 1.0, 2.0), (by_multiplier, 0.5, 1.0)):
        broken, drawn = torch.tensor(ax.lines[1].get_xydata()).T
        wanted = PENALTIES[penalty](broken, torch.tensor(multiplier), torch.tensor(rho))
        torch.testing.assert_close(drawn, wanted.double())
    assert compared.get_legend_handles_labels()[1] == ["PHR", "P2", "P3", "hinge"]
    with pytest.raises(ValueError, match="`rhos` must be above 0"):
        plots.draw_penalties(rhos=[0.0])


def test_gradient_weights_draw_their_records():
    record = GradientWeight(np.array([0.2, 0.8]), np.array([0.8, 0.2]))
    ax = plots.draw_gradient_weights({"ce": record})
    assert ax.lines[1].get_ydata().tolist() == [0.8, 0.2]


@pytest.mark.parametrize(
    "draw",
    [
        plots.draw_history,
        plots.draw_max_logits,
        plots.draw_rivals,
        plots.draw_gammas,
        plots.draw_risk_coverage,
        plots.draw_gradient_weights,
        plots.draw_accuracy_against_error,
    ],
)
def test_nothing_to_draw_is_refused(draw):
    with pytest.raises(ValueError, match="nothing to draw"):
        draw({})


def test_drawing_changes_no_global_setting_and_importing_loads_no_plotting_library():
    code = (
        "import sys, equipoise.plots as plots; assert 'matplotlib' not in sys.modules; import matplotlib as m; "
        "before = dict(m.rcParams); plots.draw_phi(); assert dict(m.rcParams) == before"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_certified_thresholds_are_marked_with_what_they_promise():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 3000)
    rows = Predictions(probs=confidence, labels=(rng.random(3000) < confidence).astype(int))
    found = [certify_threshold(rows, max_error=limit).certificate for limit in (0.001, 0.1)]
    assert [one.certified for one in found] == [False, True]
    axes = plots.draw_risk_coverage({"ce": risk_coverage(rows)}, certificates=found)
    assert axes.lines[1].get_xdata()[0] == pytest.approx(100 * found[1].coverage)
    assert [text.get_text() for text in axes.texts] == ["≤ 10%"]
    assert len(axes.lines) == 2


def test_epochs_are_whole_numbers():
    rows = [{"epoch": epoch, "tune_ece": 0.1 / (epoch + 1)} for epoch in range(4)]
    ticks = plots.draw_history({"ce": rows}).get_xticks()
    assert all(float(tick).is_integer() for tick in ticks)
