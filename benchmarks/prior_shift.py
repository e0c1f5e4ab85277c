"""Adaptation to changed class frequencies: coverage of intervals, and NLL with and without adaptation.

    python benchmarks/prior_shift.py [--repeats 1000] [--rows 500] [--reference 500] [--changed 0] [--ratios 0.01 100]
        [--fashion fashion_mnist.npz]

A network is trained once on handwritten digits (scikit-learn), or on 10,000 images of Fashion-MNIST (a file with
`x_train`, `y_train`). Its outputs for other images are the population. Each repetition draws labeled rows with the
frequencies of the population, fits temperature scaling on them, and draws unlabeled rows in which one class is up to
100 times rarer or more frequent. Printed for each ratio:

- how often the 95% intervals contain the true frequency: of this class, and on average over the other classes, with
  standard errors, and of the other classes with the least and the most; in parentheses, how often Wilson's intervals do
  for the same frequencies if every row is classified correctly, which differs from 95% where few rows are expected;
- NLL of temperature scaling, adapted to the unlabeled rows by `PriorShift` with these reference rows, of
  bias-corrected temperature scaling with EM (written here), and adapted to the true frequencies;
- the mean difference between adapted and not adapted, with its standard error, and in how many repetitions the adapted
  rows are worse at p < 0.025 (paired, one-sided).
"""

import argparse

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import binom

from equipoise.calibrators import PriorShift, TemperatureScaling, estimate_priors
from equipoise.core import Predictions

RATIOS = (0.01, 0.1, 1.0, 10.0, 100.0)


def digits():
    """Return logits and labels of digits that the network was not trained on."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    x, y = load_digits(return_X_y=True)
    x = x / 16 + rng.normal(scale=0.35, size=x.shape)
    train, rest = np.split(rng.permutation(len(y)), [500])
    network = MLPClassifier((32,), max_iter=200, random_state=0).fit(x[train], y[train])
    return np.log(np.clip(network.predict_proba(x[rest]), 1e-12, None)), y[rest]


def fashion(path):
    """Return logits and labels of images of clothes that the network was not trained on."""
    from sklearn.neural_network import MLPClassifier

    content = np.load(path)
    x, y = content["x_train"][:40_000].reshape(40_000, -1) / 255.0, content["y_train"][:40_000].astype(int)
    network = MLPClassifier((64,), max_iter=25, random_state=0).fit(x[:10_000], y[:10_000])
    return np.log(np.clip(network.predict_proba(x[10_000:]), 1e-12, None)), y[10_000:]


def bias_corrected(logits, labels):
    """Return the log-probabilities of bias-corrected temperature scaling as a function of logits."""
    truth = np.eye(logits.shape[1])[labels]

    def loss(parameters):
        log_probs = log_softmax(logits * np.exp(parameters[0]) + parameters[1:], axis=1)
        slope = (np.exp(log_probs) - truth) / len(labels)
        return -(log_probs * truth).sum() / len(labels), np.concatenate(
            [[(slope * logits).sum() * np.exp(parameters[0])], slope.sum(axis=0)]
        )

    found = minimize(loss, np.zeros(1 + logits.shape[1]), jac=True, method="L-BFGS-B").x
    return lambda rows: log_softmax(rows * np.exp(found[0]) + found[1:], axis=1)


def adapted_by_em(log_probs, source, n_rows):
    """Return log-probabilities after EM, the reference method; frequencies of 0 are set to half a row."""
    new = np.maximum(estimate_priors(np.exp(log_probs), source), 0.5 / n_rows)
    return log_softmax(log_probs + np.log(new / source), axis=1)


def wilson_coverage(priors, n_rows):
    """Return how often Wilson's interval contains a frequency, for counts of n_rows correctly classified rows."""
    counts, tail = np.arange(n_rows + 1)[:, None], 1.959964**2
    middle = (counts + tail / 2) / (n_rows + tail)
    reach = np.sqrt(tail * (counts * (1 - counts / n_rows) + tail / 4)) / (n_rows + tail)
    return (binom.pmf(counts, n_rows, priors) * (np.abs(priors - middle) <= reach)).sum(axis=0)


def percent(values):
    """Return the mean with its standard error, in percent."""
    return f"{100 * values.mean():5.1f} ± {100 * values.std() / len(values) ** 0.5:.1f}"


def simulate(name, logits, labels, *, ratios, changed, repeats, n_rows, n_reference):
    n_classes = labels.max() + 1
    source = np.bincount(labels) / len(labels)
    order = np.argsort(labels, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(labels))])
    for ratio in ratios:
        priors = source * np.where(np.arange(n_classes) == changed, ratio, 1.0)
        priors /= priors.sum()
        covered, losses, worse = [], [], []
        for seed in range(repeats):
            rng = np.random.default_rng([seed, n_rows])
            calib = rng.integers(0, len(labels), n_reference)
            drawn = rng.choice(n_classes, size=n_rows, p=priors)
            today = order[first[drawn] + (rng.random(n_rows) * np.diff(first)[drawn]).astype(int)]
            ids = np.arange(n_reference + n_rows)
            reference = Predictions(logits=logits[calib], labels=labels[calib], ids=ids[:n_reference])
            temperature = TemperatureScaling()._fit_rows(reference)
            rows = Predictions(logits=logits[today], ids=ids[n_reference:])
            shift = PriorShift(before=temperature).fit_unlabeled(rows, reference=reference)
            low, high = shift.interval.T
            covered.append((low <= priors) & (priors <= high))
            known = PriorShift(before=temperature, trained_priors=source).set_priors(priors)
            corrected = bias_corrected(logits[calib], labels[calib])
            old = np.bincount(labels[calib], minlength=n_classes) / n_reference
            answers = [one(rows).probs for one in (temperature, shift)]
            answers += [np.exp(adapted_by_em(corrected(logits[today]), old, n_rows)), known(rows).probs]
            loss = [-np.log(np.maximum(one[np.arange(n_rows), drawn], 1e-38)) for one in answers]
            losses.append([one.mean() for one in loss])
            rise = loss[1] - loss[0]
            worse.append(rise.mean() > 1.96 * rise.std() / n_rows**0.5 if rise.any() else False)
        losses, covered = np.array(losses), np.array(covered)
        of_it, others = covered[:, changed], np.delete(covered, changed, axis=1)
        by_class, ideal = 100 * others.mean(axis=0), 100 * wilson_coverage(priors, n_rows)
        change = losses[:, 1] - losses[:, 0]
        against = losses[:, 1] - losses[:, 2]
        print(
            f"{name:8s}{n_reference:6d}{n_rows:6d}{ratio:7g}:1  coverage {percent(of_it)} ({ideal[changed]:.1f}), "
            f"{percent(others.mean(axis=1))} ({np.delete(ideal, changed).mean():.1f}), {by_class.min():.1f} to "
            f"{by_class.max():.1f}  NLL",
            *(f"{value:.4f}" for value in losses.mean(axis=0)),
            f" change {change.mean():+.5f} ± {change.std() / repeats**0.5:.5f}, worse {100 * np.mean(worse):.1f}%;",
            f"minus BCTS + EM {against.mean():+.5f} ± {against.std() / repeats**0.5:.5f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--reference", type=int, default=500)
    parser.add_argument(
        "--changed", type=int, default=0, help="the class that becomes rarer or more frequent"
    )
    parser.add_argument("--ratios", type=float, nargs="+", default=RATIOS)
    parser.add_argument("--fashion", help="a file with x_train and y_train")
    options = parser.parse_args()
    print(
        "setting, labeled rows, unlabeled rows, ratio of a class to what it was; coverage of it, of others;"
    )
    print("NLL of temperature, adapted, bias-corrected temperature + EM, true frequencies")
    settings = {"ratios": options.ratios, "changed": options.changed, "repeats": options.repeats}
    settings |= {"n_rows": options.rows, "n_reference": options.reference}
    logits, labels = fashion(options.fashion) if options.fashion else digits()
    simulate("fashion" if options.fashion else "digits", logits, labels, **settings)


if __name__ == "__main__":
    main()
