"""Forests, boosted trees, naive Bayes, networks and language models, rounded: nothing gets worse without a warning.

``benchmarks/rounding.py`` prints the whole table; these are some of its cells.
"""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from equipoise import Predictions
from equipoise.calibrators import TemperatureScaling
from equipoise.calibrators.loading import KINDS
from helpers.rounding_trials import effects, outputs

#: The 99.9% quantile of the normal distribution: of the 150 paired tests here, 0.15 fail by chance.
LEVEL = 3.09

CASES = [
    ("forest of 25", "none", 2),
    ("forest of 25", "none", 5),
    ("forest of 100", "2 decimals", 5),
    ("boosted trees", "3 decimals", 2),
    ("boosted trees", "2 decimals", 5),
    ("naive Bayes", "float16", 2),
    ("naive Bayes", "4 decimals", 5),
    ("naive Bayes", "2 decimals", 5),
    ("network", "4 decimals", 2),
    ("network", "2 decimals", 5),
    ("language model", "none", 2),
]


@pytest.mark.parametrize(("model", "rounding", "n_classes"), CASES)
def test_no_calibrator_makes_fresh_rows_worse_without_a_warning(model, rounding, n_classes):
    found = dict(effects(model, rounding, n_classes))
    assert set(found) == set(KINDS)
    silent = {
        kind: effect for kind, effect in found.items() if effect.is_worse(LEVEL) and not effect.warnings
    }
    assert not silent
    # Where something is to be gained, a temperature gains it.
    if model in ("network", "language model", "forest of 25"):
        nll, error = found["temperature"].nll
        assert nll < -LEVEL * error


def test_a_forest_that_is_underconfident_is_sharpened():
    probs, labels, fresh, fresh_labels = outputs("forest of 25", 5, 3000)
    assert (probs == 0).any()
    fitted = TemperatureScaling().fit(Predictions(probs=probs, labels=labels))
    rows = Predictions(probs=fresh, labels=fresh_labels)
    gap = float(np.mean(rows.confidence - rows.correct))
    after = fitted(rows)
    assert gap < -0.05
    assert fitted.temperature < 1
    assert abs(float(np.mean(after.confidence - after.correct))) < 0.03
