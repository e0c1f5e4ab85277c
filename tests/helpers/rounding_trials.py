"""Probabilities of real kinds of models, rounded as files round them, and what calibrators make of fresh rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from equipoise import Predictions
from equipoise.calibrators.loading import KINDS

N_TRAIN, N_CALIB = 1500, 1500

#: How probabilities are written to a file.
ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda probs: probs,
    "4 decimals": lambda probs: np.round(probs, 4),
    "3 decimals": lambda probs: np.round(probs, 3),
    "2 decimals": lambda probs: np.round(probs, 2),
    "float16": lambda probs: probs.astype(np.float16).astype(np.float64),
}
MODELS = ("forest of 25", "forest of 100", "boosted trees", "naive Bayes", "network", "language model")


@cache
def outputs(
    model: str, n_classes: int, n_fresh: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities and labels of calibration rows, then of fresh rows; one column for two classes."""
    if model == "language model":
        return _language_model(n_fresh, seed)
    inputs, labels = make_classification(
        N_TRAIN + N_CALIB + n_fresh,
        20,
        n_informative=6,
        n_redundant=2,
        n_classes=n_classes,
        flip_y=0.1,
        random_state=n_classes + 100 * seed,
    )
    inputs = StandardScaler().fit_transform(inputs)
    classifier = {
        "forest of 25": RandomForestClassifier(25, random_state=seed),
        "forest of 100": RandomForestClassifier(100, random_state=seed),
        "boosted trees": GradientBoostingClassifier(n_estimators=60, random_state=seed),
        "naive Bayes": GaussianNB(),
        "network": MLPClassifier((50,), max_iter=60, learning_rate_init=0.01, random_state=seed),
    }[model]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the network stops after 60 epochs, overconfident and not converged
        classifier.fit(inputs[:N_TRAIN], labels[:N_TRAIN])
        probs = classifier.predict_proba(inputs[N_TRAIN:])
    probs, labels = (probs[:, 1] if n_classes == 2 else probs), labels[N_TRAIN:]
    return probs[:N_CALIB], labels[:N_CALIB], probs[N_CALIB:], labels[N_CALIB:]


def _language_model(n_fresh: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return verbal confidences: few values, 1.0 among the commonest, and too high."""
    rng = np.random.default_rng(seed)
    values, shares = [0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0], [0.05, 0.05, 0.15, 0.15, 0.2, 0.2, 0.2]
    confidence = rng.choice(values, N_CALIB + n_fresh, p=shares)
    right = (rng.random(len(confidence)) < 0.2 + 0.55 * confidence).astype(int)
    return confidence[:N_CALIB], right[:N_CALIB], confidence[N_CALIB:], right[N_CALIB:]


@dataclass(frozen=True)
class Effect:
    """What a calibrator does to fresh rows, compared with none: mean rise and its standard error.

    Attributes:
        nll: Rise of the log-loss; without calibration a zero counts as half of the least step.
        brier: Rise of the Brier score; without calibration a zero is a zero.
        warnings: Those of the fit.
    """

    nll: tuple[float, float]
    brier: tuple[float, float]
    nll_before: float
    brier_before: float
    warnings: tuple[str, ...]

    def is_worse(self, z: float) -> bool:
        """Whether a score rises by more than so many standard errors, and by more than the last digits of a float."""
        return any(rise > z * error + 1e-9 for rise, error in (self.nll, self.brier))


def effects(
    model: str,
    rounding: str,
    n_classes: int,
    *,
    n_fresh: int = 6000,
    kinds: tuple[str, ...] = tuple(KINDS),
    seed: int = 0,
) -> Iterator[tuple[str, Effect]]:
    """Fit calibrators on rounded probabilities and judge them on fresh rows that are rounded alike."""
    probs, labels, fresh_probs, fresh_labels = outputs(model, n_classes, n_fresh, seed)
    fit, fresh = (
        Predictions(probs=_rounded(part, rounding), labels=true)
        for part, true in ((probs, labels), (fresh_probs, fresh_labels))
    )
    half = _least_step(fit.probs) / 2
    nll_before = _log_loss(_normalized(np.maximum(fresh.probs, half)), fresh.labels)
    brier_before = _brier(fresh.probs, fresh.labels)
    for kind in kinds:
        calibrator = KINDS[kind]().fit(fit)
        after = calibrator(fresh).probs
        if kind == "identity" or calibrator.result.identity:
            after = fresh.probs
            rise = np.zeros(len(fresh))
        else:
            rise = _log_loss(after, fresh.labels) - nll_before
        yield (
            kind,
            Effect(
                _mean(rise),
                _mean(_brier(after, fresh.labels) - brier_before),
                float(nll_before.mean()),
                float(brier_before.mean()),
                calibrator.result.warnings,
            ),
        )


def _rounded(probs: np.ndarray, rounding: str) -> np.ndarray:
    found = ROUNDINGS[rounding](probs)
    if found.ndim == 2 and (np.abs(found.sum(axis=1) - 1) > 1e-3).any():
        return _normalized(found)  # as a user must, whose rows do not sum to one
    return found


def _least_step(probs: np.ndarray) -> float:
    return float(probs[probs > 0].min())


def _normalized(probs: np.ndarray) -> np.ndarray:
    return probs / probs.sum(axis=1, keepdims=True)


def _log_loss(probs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return -np.log(np.maximum(probs[np.arange(len(labels)), labels], 1e-38))


def _brier(probs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return ((probs - np.eye(probs.shape[1])[labels]) ** 2).sum(axis=1)


def _mean(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / np.sqrt(len(values)))
