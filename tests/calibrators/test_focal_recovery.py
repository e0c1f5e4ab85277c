"""Focal posterior recovery."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.calibrators import FocalRecovery
from equipoise.theory import recover_posterior
from helpers.calibration_data import probs, sample


def test_it_is_the_theorem_s_formula() -> None:
    logits, _ = sample(20, 4)
    q = probs(logits)
    phi = (1 - q) ** 3 - 3 * q * (1 - q) ** 2 * np.log(q)
    want = q / phi / (q / phi).sum(1, keepdims=True)
    np.testing.assert_allclose(FocalRecovery(gamma=3.0)(logits), want, rtol=1e-9)


def test_gamma_zero_is_no_change() -> None:
    logits, _ = sample(20, 4)
    np.testing.assert_allclose(FocalRecovery(gamma=0.0)(logits), probs(logits), rtol=1e-9)


def test_dual_focal_goes_through_theory() -> None:
    logits, _ = sample(20, 4)
    want = recover_posterior(probs(logits), loss="dual_focal", gamma=5.0)
    np.testing.assert_allclose(FocalRecovery(loss="dual_focal", gamma=5.0)(logits), want, rtol=1e-9)


def test_it_undoes_focal_training_of_a_known_posterior() -> None:
    # Minimize the focal risk under the posterior (0.8, 0.2) on a fine grid of q, then recover 0.8.
    q = np.linspace(1e-4, 1 - 1e-4, 400_001)
    risk = -0.8 * (1 - q) ** 2 * np.log(q) - 0.2 * q**2 * np.log(1 - q)
    best = q[risk.argmin()]
    assert best != pytest.approx(0.8, abs=0.05)
    assert FocalRecovery(gamma=2.0)(np.log([[best, 1 - best]]))[0, 0] == pytest.approx(0.8, abs=1e-4)


def test_fit_only_judges() -> None:
    logits, labels = sample(500, 3)
    assert FocalRecovery(gamma=5.0).fit(3 * logits, labels).result.identity
    assert not FocalRecovery(gamma=5.0).fit(0.3 * logits, labels).result.identity


def test_negative_gamma_is_refused() -> None:
    with pytest.raises(ValueError, match="`gamma` must be at least 0"):
        FocalRecovery(gamma=-1.0)
