"""Records of a report: runs are averaged, names are checked."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from equipoise.core.errors import DataError
from equipoise.evaluate import Score
from equipoise.report import MethodResult, Report, RunResult, report_of


def test_one_run_keeps_its_own_interval(single):
    method = single.methods[0]
    assert method.score("ece") == method.first["ece"]


def test_seeds_give_mean_and_an_interval_of_rows_and_seeds(single):
    run = single.methods[0].runs[0]
    values = [0.1, 0.2, 0.4]
    cards = [
        replace(run.scores, scores={"ece": Score(value, value - 0.05, value + 0.05)}) for value in values
    ]
    method = MethodResult(
        name="m", runs=tuple(RunResult(scores=card, seed=i) for i, card in enumerate(cards))
    )
    score = method.score("ece")
    # The error of the rows, which all seeds share, and that of three seeds with two degrees of freedom.
    rows, seeds = 0.05 / norm.ppf(0.975), np.std(values, ddof=1) / np.sqrt(3)
    alone = student.ppf(0.975, 2) * seeds
    cochran = (norm.ppf(0.975) * rows**2 + student.ppf(0.975, 2) * seeds**2) / np.hypot(rows, seeds)
    half = max(cochran, alone)
    assert score.value == pytest.approx(np.mean(values))
    assert score.high - score.value == pytest.approx(half)
    np.testing.assert_allclose(method.curve().weight, run.scores.curve.weight)


def test_names_must_differ_and_the_baseline_must_be_among_them(single):
    method = single.methods[0]
    with pytest.raises(DataError, match="must be distinct"):
        Report(title="", methods=(method, method))
    with pytest.raises(DataError, match="baseline must be one of"):
        Report(title="", methods=(method,), baseline="other")
    with pytest.raises(DataError, match="`methods` is empty"):
        Report(title="", methods=())


def test_other_rows_cannot_be_compared(rows):
    with pytest.raises(DataError, match="same rows"):
        report_of({"a": rows, "b": rows.take(slice(0, 100))}, n_resamples=10)


def test_a_report_is_the_same_every_time(rows):
    from equipoise.report import to_html

    pages = {to_html(report_of(rows, n_resamples=20)) for _ in range(2)}
    assert len(pages) == 1
