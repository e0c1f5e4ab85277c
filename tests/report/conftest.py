"""Reports that tests look at: one model, and a comparison with everything a report can hold."""

from dataclasses import replace

import numpy as np
import pytest

from equipoise import Predictions, compare, score
from equipoise.report import Advice, AfterCalibrator, MethodCard, Option, report_of
from helpers.report_names import HOSTILE


@pytest.fixture(scope="session")
def rows():
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(600, len(HOSTILE)))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    return Predictions(
        logits=2.5 * logits,
        labels=labels,
        split="test",
        class_names=HOSTILE,
        groups={"site": rng.choice(["north", HOSTILE[0]], 600)},
    )


@pytest.fixture(scope="session")
def single(rows):
    return report_of(rows, title=HOSTILE[3], by=["site"], n_resamples=100, sources={"model": HOSTILE[2]})


@pytest.fixture(scope="session")
def comparison(rows):
    rng = np.random.default_rng(1)
    soft = rows.with_scores(logits=rows.logits / 2.5)
    worse = rows.with_scores(logits=rows.logits + rng.normal(scale=6, size=rows.logits.shape))
    named = {"ce": rows, "soft": soft, HOSTILE[1]: worse}
    report = report_of(named, title="A comparison", n_resamples=100)
    history = [{"epoch": e, "tune_ece": 0.2 / (e + 1), "tune_nll": 1.0 / (e + 1)} for e in range(5)]
    card = MethodCard(
        title="Cross-entropy",
        summary=HOSTILE[0],
        formula=r"-\log p_y",
        paper=HOSTILE[4],
        fidelity="ours",
        parameters={"gamma": HOSTILE[1]},
    )
    first = report.methods[0]
    after = AfterCalibrator(
        name="temperature", words="T = 2.50", scores=(soft_card(soft),), versus=compare(rows, soft)
    )
    advice = Advice(
        recommendation=HOSTILE[0],
        options=(Option(name="identity", n_parameters=0, log_loss=1.0, improvement=float("nan"), ece=0.1),),
        code="calibrator = TemperatureScaling().fit(calib)",
    )
    run = replace(first.runs[0], history=history)
    filled = replace(first, runs=(run,), calibrated=(after,), advice=advice, card=card)
    return replace(report, methods=(filled, *report.methods[1:]))


def soft_card(soft):
    return score(soft, n_resamples=100)
