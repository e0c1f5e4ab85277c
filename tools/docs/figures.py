"""Draw the figures of the README and the guides; with a folder, draw one figure of every kind there.

python tools/docs/figures.py            # docs/figures/*.png
python tools/docs/figures.py --all out  # one of each kind, to look at
"""

import sys
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

from matplotlib import pyplot as plt
from torch.nn import functional

from equipoise import Predictions, losses, metrics, plots, read_predictions, score, theory

HERE = Path(__file__).resolve().parents[2] / "docs" / "figures"


def embedded() -> tuple[Predictions, Predictions, float]:
    """Return a network's predictions on half of the rows before and after scaling, and the temperature.

    The temperature is fitted on the other half.
    """
    with as_file(files("equipoise").joinpath("data", "embedded", "digits.npz")) as path:
        rows = read_predictions(path)
    order = np.random.default_rng(0).permutation(len(rows))
    fit, judge = rows.take(order[: len(rows) // 2]), rows.take(order[len(rows) // 2 :])
    grid = np.geomspace(0.5, 8, 200)
    temperature = grid[metrics.sweep_temperatures(fit, temperatures=grid).nll.argmin()]
    return judge, judge.with_scores(logits=judge.logits / temperature), float(temperature)


def reliability():
    before, after, temperature = embedded()
    curves = {
        "An overconfident network": metrics.reliability_curve(before, n_bins=10),
        f"After temperature scaling, T = {temperature:.1f}": metrics.reliability_curve(after, n_bins=10),
    }
    return plots.draw_reliability_diagrams(curves)


def three_models():
    """Draw an overconfident, an underconfident and a calibrated model of the same rows."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(20_000, 5))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    scales = {"Overconfident": 2.5, "Underconfident": 0.4, "Calibrated": 1.0}
    return plots.draw_reliability_diagrams(
        {
            name: metrics.reliability_curve(Predictions(logits=scale * logits, labels=labels), n_bins=10)
            for name, scale in scales.items()
        }
    )


def splits():
    """Draw the rows of a data set as four splits, and what each is used for."""
    figure, axes = plt.subplots(figsize=(8, 1.9), layout="constrained")
    parts = [
        ("train", 0.64, "fit the network"),
        ("tune", 0.12, "stop, choose,\nadapt losses"),
        ("calib", 0.12, "fit calibrators\nand thresholds"),
        ("test", 0.12, "judge, once"),
    ]
    left = 0.0
    for (name, share, use), color in zip(parts, ("#cfd8dc", "#b3d4f0", "#f8d8c6", "#c8e6c9"), strict=True):
        axes.barh(0, share, left=left, color=color, edgecolor="white", linewidth=2)
        axes.text(left + share / 2, 0.0, name, ha="center", va="center", fontweight="bold")
        axes.text(left + share / 2, -0.62, use, ha="center", va="top", fontsize=9)
        left += share
    axes.set(xlim=(0, 1), ylim=(-1.25, 0.5))
    axes.axis("off")
    return figure


def run_stages():
    """Draw the stages of a run and the files that each writes."""
    figure, axes = plt.subplots(figsize=(8, 1.7), layout="constrained")
    stages = [
        ("train", "history.csv, last.pt"),
        ("predict", "predictions/*.npz"),
        ("calibrate", "calibrators/*"),
        ("score", "scores/*.json"),
        ("table, report", "read only"),
    ]
    for index, (name, files_written) in enumerate(stages):
        axes.annotate(
            name,
            (index, 0.5),
            ha="center",
            va="center",
            fontweight="bold",
            bbox={"boxstyle": "round,pad=0.5", "facecolor": "#dcebf7", "edgecolor": "#0072b2"},
        )
        axes.text(index, -0.35, files_written, ha="center", fontsize=9)
        if index:
            axes.annotate("", (index - 0.33, 0.5), (index - 0.67, 0.5), arrowprops={"arrowstyle": "->"})
    axes.set(xlim=(-0.6, len(stages) - 0.4), ylim=(-0.7, 1.1))
    axes.axis("off")
    return figure


def gradients():
    pulls = {
        "cross-entropy": functional.cross_entropy,
        "label smoothing 0.05": losses.label_smoothing_loss,
        "focal, γ = 3": losses.focal_loss,
        "dual focal, γ = 5": losses.dual_focal_loss,
        "inverse focal": losses.inverse_focal_loss,
        "Brier": losses.brier_loss,
        "margin 10": losses.margin_loss,
        "entropy": losses.entropy_regularized_loss,
    }
    return plots.draw_gradient_weights({name: theory.gradient_weight(f) for name, f in pulls.items()}).figure


def every_kind() -> dict:
    """Return a function per kind of figure; invented numbers stand in for histories."""
    before, after, _ = embedded()
    both = {"before": before, "after": after}
    cards = {name: score(part, n_resamples=300) for name, part in both.items()}
    rng = np.random.default_rng(0)
    epochs = np.arange(60)
    history = {
        name: [
            {"epoch": int(e), "tune_ece": 0.3 / (e + 3) + rise * e / 60 + 0.002 * rng.random()}
            for e in epochs
        ]
        for name, rise in (("cross-entropy", 0.06), ("focal", 0.02), ("dual focal", 0.01))
    }
    learnt = [
        {
            "epoch": int(e),
            "multipliers_mean": 0.1 * e,
            "multipliers_min": 0.02 * e,
            "multipliers_max": 0.3 * e,
        }
        for e in epochs
    ]
    gammas = {f"epoch {e}": rng.gamma(e, 0.3, 2000) for e in (5, 10, 20)}
    curves = {name: metrics.reliability_curve(part) for name, part in both.items()}
    smooth = {name: metrics.smooth_curve(part) for name, part in both.items()}
    classes = metrics.CalibrationState.of(before).class_curves()
    return {
        "diagrams": partial(plots.draw_reliability_diagrams, curves),
        "overlay": partial(plots.draw_reliability_diagrams, curves, smooth=smooth),
        "smooth": partial(plots.draw_smooth_reliability, smooth["before"]),
        "classwise": partial(plots.draw_classwise, classes, class_names=[f"digit {i}" for i in range(10)]),
        "scatter": partial(plots.draw_accuracy_against_error, cards),
        "history": partial(plots.draw_history, history),
        "max_logits": partial(plots.draw_max_logits, both),
        "rivals": partial(plots.draw_rivals, {n: metrics.rival_probability(p) for n, p in both.items()}),
        "multipliers": partial(plots.draw_multipliers, learnt),
        "gammas": partial(plots.draw_gammas, gammas),
        "temperature": partial(plots.draw_temperature_sweep, metrics.sweep_temperatures(before)),
        "risk_coverage": partial(
            plots.draw_risk_coverage, {n: metrics.risk_coverage(p) for n, p in both.items()}
        ),
        "phi": plots.draw_phi,
        "gradients": gradients,
    }


def save(drawn, path: Path) -> None:
    figure = drawn if hasattr(drawn, "savefig") else drawn.figure
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, facecolor="white")
    print(path)


def main() -> None:
    if sys.argv[1:2] == ["--all"]:
        for name, draw in every_kind().items():
            save(draw(), Path(sys.argv[2]) / f"{name}.png")
    else:
        for name, draw in (
            ("reliability", reliability),
            ("three-models", three_models),
            ("splits", splits),
            ("run-stages", run_stages),
        ):
            save(draw(), HERE / f"{name}.png")


if __name__ == "__main__":
    main()
