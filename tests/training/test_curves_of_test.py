"""Scores on test of every epoch are for curves: asked for, marked, and never used to choose."""

import pytest
import torch
from torch import nn

from equipoise.core.errors import SpecError
from equipoise.experiments import ComparisonSpec, Spec, report_of_runs, run, run_comparison
from equipoise.objectives import Supervised
from equipoise.report import to_html, to_markdown
from equipoise.training import Selection, fit, predict, read_checkpoint
from equipoise.training.epoch_scores import scores_on_test
from helpers import toys
from helpers.tiny_runs import QUICK, TABLE, quick_options

COLUMNS = ["test_accuracy", "test_nll", "test_ece", "test_nll_scaled"]


class Perverse(toys.Blobs):
    """A test split whose labels are wrong: the more is learned the worse it gets. It draws random numbers, too."""

    def __call__(self, **where):
        torch.rand(7)
        return [
            toys.Rows(b.inputs, (b.targets + 1) % toys.N_CLASSES, b.index) for b in super().__call__(**where)
        ]


TEST = Perverse(30, seed=5, shuffle=False)


def trained(objective, folder, **more):
    history = fit(
        objective,
        toys.TRAIN,
        epochs=3,
        tune=toys.TUNE,
        folder=folder,
        hardware=toys.CPU,
        selection=Selection(patience=2),
        **more,
    )
    return (
        toys.without_clock(history),
        read_checkpoint(folder / "best.pt"),
        read_checkpoint(folder / "last.pt"),
    )


@pytest.mark.parametrize("name", ["supervised", "gamma_net", "pruned"])
def test_a_run_is_the_same_with_and_without(name, tmp_path):
    """Test is perverse here: whoever looked at it would choose another epoch."""
    plain, best, last = trained(toys.OBJECTIVES[name](0), tmp_path / "plain")
    watched, same_best, same_last = trained(toys.OBJECTIVES[name](0), tmp_path / "watched", test=TEST)
    assert [{k: v for k, v in row.items() if k not in COLUMNS} for row in watched] == plain
    assert min(range(3), key=lambda epoch: watched[epoch]["test_nll"]) == 0, "test would stop at once"
    assert best["epoch"] > 0
    toys.assert_equal(same_best, best)
    toys.assert_equal(same_last["objective"], last["objective"])
    toys.assert_equal(same_last["random"], last["random"])


def test_a_loss_that_adapts_sees_tune_alone(tmp_path):
    plain, *_ = trained(toys.ADAPTIVE["cals_alm"](0), tmp_path / "plain")
    watched, *_ = trained(toys.ADAPTIVE["cals_alm"](0), tmp_path / "watched", test=TEST)
    for row, other in zip(plain, watched, strict=True):
        assert row["multipliers_mean"] == other["multipliers_mean"]


def test_scores_are_those_of_the_network_at_tunes_temperature():
    objective = Supervised(toys.make_network(0), nn.CrossEntropyLoss(), recipe=toys.RECIPE)
    row = fit(objective, toys.TRAIN, epochs=1, tune=toys.TUNE, test=TEST, hardware=toys.CPU)[-1]
    found = predict(objective.network(), TEST(**toys.WHERE), split="test")
    assert {key: row[key] for key in COLUMNS} == scores_on_test(found, temperature=row["tune_temperature"])
    labels = torch.tensor(found.labels)
    cooled = torch.tensor(found.logits) / row["tune_temperature"]
    assert row["test_nll_scaled"] == pytest.approx(
        nn.functional.cross_entropy(cooled, labels).item(), rel=1e-6
    )


@pytest.mark.parametrize("metric", COLUMNS)
def test_no_epoch_can_be_chosen_by_them(metric):
    with pytest.raises(ValueError, match="`metric` must be"):
        Selection(metric=metric)
    with pytest.raises(SpecError, match="select"):
        Spec.from_table({**TABLE, "recipe": {"name": "quick", "keep": "best", "select": metric}})


def test_a_comparison_asks_for_them_and_its_report_says_so(tmp_path):
    table = {**TABLE, "name": "curves", "history": "test", "recipe": {"name": "quick", "epochs": 1}}
    done = run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1).summary.done
    assert set(COLUMNS) <= set(done[0].history()[0])
    [report] = report_of_runs(done).values()
    for page in (to_html(report), to_markdown(report)):
        assert "chosen by them" in page


def test_they_cannot_be_had_afterwards(tmp_path):
    spec = Spec.from_table({**TABLE, "recipe": {"name": "quick", "epochs": 1}})
    run(spec, tmp_path, **QUICK)
    options = quick_options(history="test")
    with pytest.raises(SpecError, match="was trained without scores on test of every epoch"):
        run(spec, tmp_path, **options)


def test_mistakes_are_told_before_anything_runs():
    with pytest.raises(SpecError, match="Did you mean 'test'"):
        ComparisonSpec.from_table({**TABLE, "history": "tests"})
