"""What a report says first."""

from dataclasses import replace

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.report import AfterCalibrator, report_of
from equipoise.report.conclusion import conclusion_of
from equipoise.report.numbers import chance


def model(shift, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.55, 0.95, n)
    right = rng.random(n) < confidence - shift
    return Predictions(predicted=np.zeros(n, int), labels=np.where(right, 0, 1), confidence=confidence)


@pytest.mark.parametrize(
    ("shift", "tone", "headline"),
    [
        (0.15, "bad", "Overconfident by"),
        (-0.05, "bad", "Underconfident by"),
        (0.0, "good", "Consistent with"),
    ],
)
def test_direction_of_a_single_model(shift, tone, headline):
    conclusion = conclusion_of(report_of(model(shift), n_resamples=300))
    assert conclusion.tone == tone
    assert conclusion.headline.startswith(headline)


@pytest.mark.parametrize(
    ("shifts", "tone", "headline", "explained"),
    [
        ((0.15, 0.25), "bad", "Overconfident by 20", "no run"),
        ((0.0, 0.0), "good", "Consistent with a calibrated model in every run", "every run"),
        ((0.0, 0.15, 0.15), "bad", "Miscalibrated in 2 of 3 runs", "1 of 3 runs"),
        ((0.15, -0.15), "bad", "Miscalibrated in every run, not always in one direction", "no run"),
    ],
)
def test_several_runs_of_one_method_are_all_heard(shifts, tone, headline, explained):
    runs = [report_of(model(shift), n_resamples=200).methods[0].runs[0] for shift in shifts]
    one = report_of(model(shifts[0]), n_resamples=200)
    seeds = replace(one, methods=(replace(one.methods[0], runs=tuple(runs)),))
    conclusion = conclusion_of(seeds)
    assert conclusion.tone == tone
    assert conclusion.headline.replace("\u00a0", " ").startswith(headline)
    assert f"Chance explains the ECE of {explained}." in [
        one.replace("\u00a0", " ") for one in conclusion.sentences
    ]


def test_both_directions_that_cancel():
    low, high = model(-0.2, 3000), model(0.2, 3000, seed=1)
    rows = Predictions(
        predicted=np.zeros(6000, int),
        labels=np.concatenate([low.labels, high.labels]),
        confidence=np.concatenate([low.confidence * 0.6, high.confidence]),
    )
    shift = float(rows.confidence.mean() - rows.correct.mean())
    confidence = np.clip(rows.confidence - shift, 0, 1)
    balanced = Predictions(predicted=rows.predicted, labels=rows.labels, confidence=confidence)
    assert conclusion_of(report_of(balanced, n_resamples=300)).headline == "Miscalibrated in both directions"


def test_the_worst_bin_is_told_with_its_numbers():
    rows = Predictions(predicted=[0] * 100, labels=[0] * 50 + [1] * 50, confidence=[0.97] * 100)
    words = " ".join(conclusion_of(report_of(rows, n_resamples=50)).sentences).replace("\u00a0", " ")
    assert (
        "between 93 and 100% confidence: of the 100 rows there, 50.0% are right, where 97.0% are claimed"
        in words
    )


def test_a_comparison_names_better_tied_and_worse_and_the_cost(rows):
    rng = np.random.default_rng(1)
    noisy = rows.logits + rng.normal(scale=6, size=rows.logits.shape)
    report = report_of(
        {
            "base": rows,
            "same": rows.with_scores(logits=rows.logits * 1.001),
            "soft": rows.with_scores(logits=rows.logits / 2.5),
            "noisy": rows.with_scores(logits=noisy),
        },
        n_resamples=300,
    )
    conclusion = conclusion_of(report)
    kinds = {one.name: one.kind for one in conclusion.judgments}
    assert kinds == {"same": "tied", "soft": "better", "noisy": "worse"}
    assert conclusion.headline == "1 of 3 is better calibrated than base"
    words = {one.name: one.words for one in conclusion.judgments}
    assert "costs" in words["noisy"]
    assert "accuracy a tie" in words["soft"]


def test_two_models_are_named(rows):
    soft = rows.with_scores(logits=rows.logits / 2.5)
    conclusion = conclusion_of(report_of({"a": rows, "b": soft}, n_resamples=100))
    assert conclusion.headline == "b is better calibrated than a"
    other = conclusion_of(report_of({"a": rows, "b": soft}, baseline="b", n_resamples=100))
    assert other.headline == "a is worse calibrated than b"
    assert other.tone == "mixed"


def trained(scale, noise=0.0, n=3000, seed=0):
    """A model on rows that all such models share, overconfident by a factor, with noise of its own."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(n, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    own = np.random.default_rng(seed).normal(scale=noise, size=logits.shape) if noise else 0.0
    return Predictions(logits=scale * (logits + own), labels=labels)


def halves(models):
    judged = {name: rows.take(slice(0, 1500)) for name, rows in models.items()}
    calib = {name: rows.take(slice(1500, 3000)).with_split("calib") for name, rows in models.items()}
    return judged, calib


def test_methods_that_a_calibrator_levels_are_said_to_be_level():
    judged, calib = halves({"ce": trained(3.0), "focal": trained(1.5), "smooth": trained(1.2)})
    report = report_of(judged, calib=calib, candidates=["temperature"], n_resamples=200)
    found = conclusion_of(report)
    assert found.headline == "After temperature, none of 2 is shown to differ from ce in calibration"
    words = " ".join(found.sentences).replace("\u00a0", " ")
    assert "Without a calibrator, 2 of 2 are better calibrated than ce." in words
    assert "use ce and fit temperature" in words
    assert {one.kind for one in found.judgments} == {"better"}
    assert found.tone == "good"


def test_a_method_that_is_better_after_the_calibrator_is_recommended():
    judged, calib = halves({"ce": trained(3.0, noise=1.5, seed=1), "sharp": trained(1.5)})
    report = report_of(judged, calib=calib, candidates=["temperature"], n_resamples=200)
    found = conclusion_of(report)
    words = " ".join(found.sentences).replace("\u00a0", " ")
    assert found.headline.startswith("After temperature, sharp is ")
    assert "The log-likelihood is better with sharp." in words
    assert "What to do: use sharp and fit temperature on held-out rows; it gains" in words


def test_better_than_a_bad_baseline_is_not_green():
    found = conclusion_of(report_of({"ce": trained(6.0), "less bad": trained(3.0)}, n_resamples=100))
    assert found.headline == "less bad is better calibrated than ce"
    assert found.tone == "bad"
    assert any("which is large" in sentence for sentence in found.sentences)
    assert any("after a calibrator fitted on held-out rows" in sentence for sentence in found.sentences)


@pytest.mark.parametrize(("level", "is_explained"), [(0.95, False), (0.9999, True)])
def test_what_chance_explains_is_told_at_the_level_of_the_report(level, is_explained):
    rows = model(0.045, n=1000)
    found = report_of({"a": rows, "b": rows}, level=level, n_resamples=2000)
    assert 0.0001 < found.base.first["ece"].p_value < 0.05
    words = " ".join(conclusion_of(found).sentences)
    assert ("which chance explains" in words) == is_explained


def test_what_chance_explains_in_every_run_is_no_error_of_the_best():
    rows = model(0, n=300)
    one = report_of({"a": rows, "b": rows}, n_resamples=200)
    seeds = replace(one, methods=tuple(replace(method, runs=method.runs * 2) for method in one.methods))
    assert seeds.base.first["ece"].p_value > 0.05
    assert seeds.base.score("ece").value > 0.02
    found = conclusion_of(seeds)
    assert "which chance explains in every run" in " ".join(found.sentences)
    assert found.tone == "good"


def test_many_comparisons_are_corrected_and_shown_so():
    base = trained(1.5)
    others = {f"m{i}": trained(1.5, noise=0.05, seed=i) for i in range(1, 9)}
    report = report_of({"ce": base, **others}, n_resamples=200)
    raw = {method.name: method.versus.of("ece").p_value for method in report.others}
    corrected = {name: one.of("ece").p_value for name, one in report.versus().items()}
    smallest = min(raw, key=raw.get)
    ranked = sorted(raw.values())
    wanted = min(1.0, *(8 * p / rank for rank, p in enumerate(ranked, 1)))
    assert corrected[smallest] == pytest.approx(wanted)
    assert all(corrected[name] >= raw[name] for name in raw)
    words = {one.name: one.words for one in conclusion_of(report).judgments}
    assert chance(corrected[smallest]) in words[smallest]


def test_seeds_tell_their_mean_temperature():
    one = AfterCalibrator(name="temperature", scores=(), words="T = 1.80", temperatures=(1.8, 2.0, 2.2))
    assert one.fitted == "T = 2.00 on average over 3 seeds, 1.80 to 2.20"
    assert AfterCalibrator(name="vector", scores=(), words="3 scales").fitted == "3 scales"


def test_one_seed_recommends_seeds_and_no_method():
    judged, calib = halves({"ce": trained(3.0), "focal": trained(1.5, noise=0.1, seed=1)})
    report = report_of(judged, calib=calib, candidates=["temperature"], n_resamples=100)
    once = replace(
        report,
        methods=tuple(replace(method, runs=(replace(method.runs[0], seed=0),)) for method in report.methods),
    )
    found = conclusion_of(once)
    assert "networks" in found.headline
    assert any("train several seeds before choosing a method" in one for one in found.sentences)
    assert any("one seed says nothing about the next training" in one for one in found.sentences)


@pytest.mark.parametrize(
    ("ece", "tone", "words"),
    [
        (0.0199, "good", "which is small"),
        (0.0201, "mixed", "even the best is off by about 2.0 points"),
        (0.0499, "mixed", "even the best is off by about 5.0 points"),
        (0.0501, "bad", "which is large"),
    ],
)
def test_two_and_five_points_separate_small_noticeable_and_large(ece, tone, words):
    n = 40_000
    right = np.arange(n) < 0.6 * n
    named = {"predicted": np.zeros(n, int), "labels": np.where(right, 0, 1)}
    models = {
        name: Predictions(**named, confidence=np.full(n, 0.6 + gap))
        for name, gap in (("ce", 0.3), ("best", ece))
    }
    found = conclusion_of(report_of(models, n_resamples=50))
    assert found.tone == tone
    assert words in " ".join(found.sentences).replace("\u00a0", " ")
