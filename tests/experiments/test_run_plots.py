"""Figures of runs: means over seeds, one point per method, choices of every seed, nothing hidden by a legend."""

import itertools

import numpy as np
import pytest

from equipoise import plots
from equipoise.evaluate import Score, Sweep
from equipoise.experiments import PlotOptions, make_tables, plot_runs, report_of_runs
from equipoise.experiments.results.groups import group_runs
from equipoise.experiments.results.means import score_over_seeds
from equipoise.experiments.tuning.choices import SeedChoice, sweep_of
from equipoise.metrics import expected_calibration_error, rival_probability
from equipoise.plots.style import panels, series_styles
from helpers.finished_runs import finish_run, rows_of, separable

SEEDS = (0, 1, 2)


def method(name, **parameters):
    return {"name": name, "options": parameters}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Six methods; the sharpness of each grows with the seed, so that seed 0 is not the mean."""
    base = tmp_path_factory.mktemp("plots")
    settings = [("focal", 1.0), ("focal", 3.0), ("dual_focal", 1.0), ("dual_focal", 3.0)]
    methods = ["ce", "brier", *(method(name, gamma=gamma) for name, gamma in settings)]
    return [
        finish_run(
            base,
            method=one,
            seed=seed,
            sharpness=1 + 0.3 * place + 0.8 * seed,
            history=f"epoch,loss,tune_ece\n0,1.0,0.{seed + 1}\n1,0.5,0.{seed + 2}\n",
            calib=separable() if one == "ce" else None,
        )
        for place, one in enumerate(methods)
        for seed in SEEDS
    ]


@pytest.fixture
def draw(runs):
    def draw_kind(kind, **options):
        [figure] = plot_runs(kind, runs, PlotOptions(**options)).values()
        return figure

    return draw_kind


def means(runs, calibrator="identity"):
    [table] = make_tables(runs)
    return {row.method: row.cells for row in table.rows if row.calibrator == calibrator}


def boxes(figure, texts):
    figure.canvas.draw()
    return [text.get_window_extent() for text in texts if text.get_text()]


def test_the_tradeoff_shows_the_mean_of_all_seeds_once_per_method(draw, runs):
    [ax] = draw("tradeoff").axes
    handles, labels = ax.get_legend_handles_labels()
    drawn = {
        label: (one.lines[0].get_xdata()[0], one.lines[0].get_ydata()[0])
        for one, label in zip(handles, labels, strict=True)
    }
    expected = {
        label: (100 * cells["ece"].mean, 100 * cells["accuracy"].mean) for label, cells in means(runs).items()
    }
    assert len(labels) == len(expected) == 6
    for label, place in expected.items():
        assert drawn[label] == pytest.approx(place)
    assert ax.get_legend().get_title().get_text() == "means of 3 seeds"


def test_intervals_of_the_tradeoff_are_those_over_seeds(draw, runs):
    [ax] = draw("tradeoff").axes
    [group] = group_runs(runs)
    expected = score_over_seeds(list(group.seeds("ce", "identity").values()), "ece")
    handles, labels = ax.get_legend_handles_labels()
    across = handles[labels.index("ce")].lines[2][0].get_segments()[0][:, 0]
    assert across == pytest.approx([100 * expected.low, 100 * expected.high])


def test_reliability_panels_print_the_mean_ece_and_say_so(draw, runs):
    figure = draw("reliability")
    shown = {
        ax.get_title(loc="left"): [text.get_text() for text in ax.texts]
        for ax in figure.axes
        if ax.get_title(loc="left")
    }
    for label, cells in means(runs).items():
        [text] = shown[f"{label}\nmean of 3 seeds"]
        assert text.startswith(f"mean ECE {100 * cells['ece'].mean:.1f}%")


def test_a_hyperparameter_has_one_line_per_method_and_split_and_a_point_per_value(draw, runs):
    figure = draw("hyperparameter", parameter="gamma")
    above, below = figure.axes
    handles, labels = above.get_legend_handles_labels()
    assert labels == ["focal, test", "focal, tune", "dual_focal, test", "dual_focal, tune"]
    expected = means(runs)
    [group] = group_runs(runs)
    for one, label in zip(handles, labels, strict=True):
        name, split = label.split(", ")
        assert one.lines[0].get_xdata().tolist() == [1.0, 3.0]
        wanted = [100 * expected[f"{name}(gamma={gamma})"]["ece"].mean for gamma in (1.0, 3.0)]
        if split == "tune":
            seeds = [group.seeds(f"{name}(gamma={gamma})", "identity").values() for gamma in (1.0, 3.0)]
            wanted = [100 * np.mean([run.cards["tune"]["ece"].value for run in part]) for part in seeds]
        assert one.lines[0].get_ydata() == pytest.approx(wanted)
    assert (above.get_ylabel(), below.get_ylabel()) == ("ECE %", "accuracy %")


def test_a_hyperparameter_after_a_calibrator_is_drawn_on_test_alone(draw):
    above, _ = draw("hyperparameter", parameter="gamma", calibrator="temperature").axes
    assert above.get_legend_handles_labels()[1] == ["focal", "dual_focal"]


def test_a_hyperparameter_may_be_of_categories_or_of_the_recipe(tmp_path):
    penalties = [
        finish_run(tmp_path, method=method("cals_alm", penalty=penalty), seed=0) for penalty in ("phr", "p2")
    ]
    decays = [
        finish_run(tmp_path, method={"name": "ce", "recipe": {"weight_decay": decay}}, seed=0)
        for decay in (0.0, 0.01)
    ]
    [figure] = plot_runs("hyperparameter", penalties, PlotOptions(parameter="penalty")).values()
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["phr", "p2"]
    [figure] = plot_runs("hyperparameter", decays, PlotOptions(parameter="weight_decay")).values()
    handles, labels = figure.axes[0].get_legend_handles_labels()
    assert labels == ["ce, test", "ce, tune"]
    assert handles[0].lines[0].get_xdata().tolist() == [0.0, 0.01]


@pytest.mark.parametrize("calibrator", ["identity", "temperature"])
def test_runs_are_scored_anew_with_other_bins_and_nothing_is_written(draw, runs, calibrator):
    files = {path: path.stat().st_mtime_ns for run in runs for path in run.path.rglob("*")}
    figure = draw("reliability", calibrator=calibrator, n_bins=25)
    titles = [ax.get_title(loc="left").splitlines()[0] for ax in figure.axes if ax.get_title(loc="left")]
    texts = [ax.texts[0].get_text() for ax in figure.axes if ax.get_title(loc="left")]
    [group] = group_runs(runs, n_bins=25)
    for title, text in zip(titles, texts, strict=True):
        errors = [
            expected_calibration_error(run.calibrated(calibrator), n_bins=25) for run in group.methods[title]
        ]
        assert text.startswith(f"mean ECE {100 * np.mean(errors):.1f}%")
        for part in group.seeds(title, calibrator).values():
            assert {card.n_bins for card in part.cards.values()} == {25}
            assert part.draws.values["ece"] == pytest.approx(part.test["ece"].value)
    assert files == {path: path.stat().st_mtime_ns for run in runs for path in run.path.rglob("*")}
    [report] = report_of_runs(runs, n_bins=25).values()
    assert report.methods[0].runs[0].scores.n_bins == 25


def test_rivals_are_those_of_all_seeds(draw, runs):
    [ax] = draw("rivals").axes
    assert len(ax.get_xticklabels()) == 6
    [group] = group_runs(runs)
    pooled = np.concatenate([rival_probability(run.predictions("test")) for run in group.methods["ce"]])
    lines = [line.get_ydata() for line in ax.lines]
    assert any(np.allclose(line, np.median(pooled)) for line in lines)


def test_a_history_is_the_mean_of_seeds_with_their_range(draw):
    [ax] = draw("history").axes
    line = next(line for line in ax.lines if line.get_label() == "ce")
    assert line.get_ydata() == pytest.approx([20.0, 30.0])
    band = ax.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((10.0, 40.0))
    assert ax.get_legend().get_title().get_text() == "mean and range of 3 seeds"


def test_logits_of_all_seeds_are_pooled(draw):
    [ax] = draw("logits").axes
    largest = max(rows_of("test", sharpness=4.1, seed=2).logits.max(axis=1))
    assert ax.get_xlim()[1] > largest


def test_titles_and_legends_of_confidence_do_not_overlap(draw):
    figure = draw("confidence")
    figure.canvas.draw()
    for ax in figure.axes:
        title = ax._left_title.get_window_extent()
        assert ax.get_title(loc="left")
        assert not title.overlaps(ax.get_legend().get_window_extent())
    titles = [ax._left_title.get_window_extent() for ax in figure.axes]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(titles, 2))


@pytest.mark.parametrize("kind", ["tradeoff", "history", "logits", "bars", "hyperparameter"])
def test_a_legend_stands_beside_the_data(draw, kind):
    figure = draw(kind, **({"parameter": "gamma"} if kind == "hyperparameter" else {}))
    figure.canvas.draw()
    ax = figure.axes[0]
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1
    assert ax.get_window_extent().width > 0.4 * figure.bbox.width


def test_panels_wrap(draw):
    figure = draw("reliability")
    places = {ax.get_subplotspec().colspan.start for ax in figure.axes}
    assert len(figure.axes) == 12
    assert places == {0, 1, 2}
    _, grid = panels(9, size=(2, 2))
    assert len(grid) == 9
    assert {ax.get_subplotspec().rowspan.start for (ax,) in grid} == {0, 1, 2}


def test_many_series_have_styles_of_their_own():
    styles = list(itertools.islice(series_styles(), 24))
    assert len({(color, marker) for color, marker, _ in styles}) == 24
    assert len({(color, str(dash)) for color, _, dash in styles}) == 24


@pytest.mark.parametrize("kind", ["confidence", "reliability"])
@pytest.mark.parametrize("calibrator", ["identity", "temperature"])
def test_titles_stay_inside_the_figure(draw, kind, calibrator):
    figure = draw(kind, calibrator=calibrator)
    figure.canvas.draw()
    for ax in figure.axes:
        title = ax._left_title.get_window_extent()
        assert title.y1 <= figure.bbox.y1
        assert title.x1 <= figure.bbox.x1


@pytest.mark.parametrize("kind", ["confidence", "reliability"])
def test_titles_of_panels_overlap_nothing(tmp_path, kind):
    wide = {"name": "differentiated_mutual_learning", "auxiliary": "mlp", "options": {"n_auxiliaries": 2}}
    methods = [wide, *({**wide, "title": f"{place} {'MMMM ' * 12}"} for place in range(5))]
    found = [
        finish_run(tmp_path, method={**one, "recipe": {"epochs": place + 2}}, seed=0)
        for place, one in enumerate(methods)
    ]
    [figure] = plot_runs(kind, found, PlotOptions()).values()
    figure.canvas.draw()
    titles = [ax._left_title for ax in figure.axes]
    legends = [ax.get_legend() for ax in figure.axes if ax.get_legend()]
    labels = [ax.xaxis.label for ax in figure.axes]
    found = boxes(figure, [*titles, *labels]) + [one.get_window_extent() for one in legends]
    assert len(found) >= 18
    assert not any(one.overlaps(other) for one, other in itertools.combinations(found, 2))


@pytest.mark.parametrize("kind", ["bars", "tradeoff", "reliability"])
def test_a_warning_of_a_fit_stands_below_the_figure(draw, kind):
    text = draw(kind, calibrator="temperature").get_supxlabel()
    assert "ce + temperature" in text.replace("\n", " ")
    assert "separate the classes" in text.replace("\n", " ")
    assert draw(kind, calibrator="identity").get_supxlabel() == ""


def choice(seed, index):
    numbers = tuple((0.1 * k, 0.1 * k - 0.05, 0.1 * k + 0.05) for k in (3, 1, 2))
    return SeedChoice(
        label="focal(gamma by nll)",
        seed=seed,
        by="nll",
        rule="best",
        settings=({"gamma": 1.0}, {"gamma": 2.0}, {"gamma": 3.0}),
        runs=(f"a{seed}", f"b{seed}", f"c{seed}"),
        tune=numbers,
        test=numbers,
        index=index,
    )


def test_a_sweep_marks_every_choice_with_its_number_of_seeds():
    sweep = sweep_of([choice(0, 0), choice(1, 1), choice(2, 1)])
    ax = plots.draw_sweep(sweep)
    marks = {text.get_text(): text.xy[0] for text in ax.texts}
    assert marks == {"1/3": 1.0, "2/3": 2.0}


def test_marks_of_neighbors_do_not_overlap():
    settings = tuple({"gamma": float(value)} for value in (1.0, 1.1, 1.2, 5.0))
    score = (Score(0.5, 0.4, 0.6),) * 4
    ax = plots.draw_sweep(Sweep("focal", "nll", settings, score, score, (1, 1, 2, 1), ""))
    found = boxes(ax.figure, ax.texts)
    assert len(found) == 4
    assert not any(one.overlaps(other) for one, other in itertools.combinations(found, 2))
    title = ax._left_title.get_window_extent()
    assert not any(title.overlaps(one) for one in found)


def test_histories_of_seeds_that_end_early_leave_gaps_to_the_others():
    rows = [[{"epoch": 0, "loss": 1.0}, {"epoch": 1, "loss": 3.0}], [{"epoch": 0, "loss": 2.0}]]
    ax = plots.draw_history({"ce": rows}, column="loss")
    assert ax.lines[0].get_ydata() == pytest.approx([1.5, 3.0])
    assert np.isfinite(ax.collections[0].get_paths()[0].vertices).all()
