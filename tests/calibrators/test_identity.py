"""No calibration."""

from __future__ import annotations

import numpy as np

from equipoise.calibrators import Identity
from helpers.calibration_data import sample


def test_nothing_changes_fitted_or_not() -> None:
    logits, labels = sample(20, 3)
    np.testing.assert_array_equal(Identity()(logits), logits)
    fitted = Identity().fit(logits, labels)
    np.testing.assert_array_equal(fitted(logits), logits)
    assert fitted.result.nll_before == fitted.result.nll_after
    assert not fitted.result.identity  # nothing was given up
