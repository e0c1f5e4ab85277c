"""Everything that metrics, evaluations and reports give survives pickling and copying."""

import copy
import pickle

import numpy as np
import pytest

from equipoise import Predictions, compare, score
from equipoise.evaluate import Limit, audit, check_limits, score_by_class
from equipoise.metrics import (
    CalibrationState,
    consistency_test,
    risk_coverage,
    smooth_curve,
    sweep_temperatures,
)
from equipoise.report import report_of, to_html


def rows():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(200, 3))
    labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(1)
    return Predictions(logits=logits, labels=labels, groups={"site": np.array(["a", "b"])[labels % 2]})


#: What makes a thing, and what it computes or says.
THINGS = {
    "state": (lambda: CalibrationState.of(rows()), lambda found: str(score(found, n_resamples=9))),
    "scorecard": (lambda: score(rows(), n_resamples=9), str),
    "curve": (lambda: score(rows(), n_resamples=9).curve, lambda found: found.to_list()),
    "audit": (lambda: audit(rows(), n_resamples=9), str),
    "differences": (
        lambda: compare(rows(), rows().with_scores(logits=rows().logits / 2), n_resamples=9),
        str,
    ),
    "slices": (lambda: score_by_class(rows()), repr),
    "gates": (lambda: check_limits(score(rows(), n_resamples=9), [Limit("ece", "max", 0.1)]), repr),
    "risk": (lambda: risk_coverage(rows()), repr),
    "consistency": (lambda: consistency_test(rows(), n_resamples=9), repr),
    "smooth curve": (lambda: smooth_curve(rows()), repr),
    "sweep": (lambda: sweep_temperatures(rows(), temperatures=[1, 2]), repr),
    "report": (lambda: report_of({"a": rows(), "b": rows()}, by=["site"], n_resamples=9), to_html),
}


@pytest.mark.parametrize("thing", THINGS)
def test_a_copy_says_what_the_original_says(thing):
    make, says = THINGS[thing]
    found = make()
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert type(again) is type(found)
        assert says(again) == says(found)
