"""Adaptation to changed class frequencies: coverage of intervals, and NLL with and without adaptation.

    python benchmarks/prior_shift.py [--repeats 200] [--rows 500]

Two settings: normal classes with a known posterior, and handwritten digits (scikit-learn) with a small network. In
each, a calibrator is fitted on rows with even frequencies, and rows are drawn so that class 0 is as frequent as all
others, or up to 100 times less or more than each other class. Printed for each ratio: how often the 95% interval holds
the true frequency, and the NLL of temperature scaling, of it with EM, of bias-corrected temperature scaling with EM
(`svs`, which has an offset per class), and of the true frequencies.
"""

import argparse

import numpy as np

from equipoise.calibrators import PriorShift, StructuredVectorScaling, TemperatureScaling
from equipoise.core import Predictions

RATIOS = (0.01, 0.1, 1.0, 10.0, 100.0)


def priors_of(ratio, n_classes):
    weights = np.ones(n_classes)
    weights[0] = ratio
    return weights / weights.sum()


def normal(rng, n, priors):
    """Draw logits that are overconfident by a factor of two, with labels."""
    labels = rng.choice(len(priors), size=n, p=priors)
    x = rng.normal(1.5 * np.eye(len(priors))[labels], 1.0)
    return 3.0 * x, labels


def digits(seed):
    """Return a function that draws held-out logits of a network by class frequencies, and rows for the calibrator."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(seed)
    x, y = load_digits(return_X_y=True)
    x = x / 16 + rng.normal(scale=0.35, size=x.shape)
    order = rng.permutation(len(y))
    train, calib, rest = np.split(order, [500, 1000])
    network = MLPClassifier((32,), max_iter=200, random_state=seed).fit(x[train], y[train])
    logits = np.log(np.clip(network.predict_proba(x), 1e-12, None))
    pool = [rest[y[rest] == k] for k in range(10)]

    def draw(rng, n, priors):
        labels = rng.choice(10, size=n, p=priors)
        rows = np.array([rng.choice(pool[k]) for k in labels])
        return logits[rows], labels

    return (logits[calib], y[calib]), draw


def nll(calibrator, rows):
    probs = calibrator(rows).probs
    return -np.log(np.maximum(probs[np.arange(len(rows)), rows.labels], 1e-38)).mean()


def simulate(name, calib, draw, *, n_classes, repeats, n_rows):
    rows = Predictions(logits=calib[0], labels=calib[1])
    temperature, corrected = TemperatureScaling().fit(rows), StructuredVectorScaling().fit(rows)
    for ratio in RATIOS:
        priors, rng = priors_of(ratio, n_classes), np.random.default_rng(0)
        covered, losses = [], []
        for seed in range(repeats):
            logits, labels = draw(rng, n_rows, priors)
            today = Predictions(logits=logits, labels=labels)
            unlabeled = Predictions(logits=logits)
            adapted = PriorShift(before=temperature).fit_unlabeled(unlabeled, seed=seed)
            other = PriorShift(before=corrected).fit_unlabeled(unlabeled, n_resamples=2)
            known = PriorShift(before=temperature).set_priors(priors)
            low, high = adapted.interval.T
            covered.append((low <= priors) & (priors <= high))
            losses.append([nll(one, today) for one in (temperature, adapted, other, known)])
        losses = np.array(losses)
        gain = losses[:, 0] - losses[:, 1]
        coverage = np.mean(covered, axis=0)
        print(
            f"{name:7s} {ratio:6g}:1  coverage {100 * coverage[0]:5.1f}%, all {100 * coverage.mean():5.1f}%  NLL",
            *(f"{value:.4f}" for value in losses.mean(axis=0)),
            f" gain {gain.mean():+.4f} ± {gain.std() / len(gain) ** 0.5:.4f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--rows", type=int, default=500)
    options = parser.parse_args()
    print(
        "setting, ratio of class 0 to each other class; NLL: temperature, + EM, SVS + EM, known frequencies"
    )
    settings = {"repeats": options.repeats, "n_rows": options.rows}
    even = normal(np.random.default_rng(1), 20_000, priors_of(1.0, 3))
    simulate("normal", even, normal, n_classes=3, **settings)
    calib, draw = digits(0)
    simulate("digits", calib, draw, n_classes=10, **settings)


if __name__ == "__main__":
    main()
