"""Figures of guides and recipes, drawn from what the page's own Python blocks compute."""

import contextlib
import io
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from run_examples import CODE

from equipoise import Predictions, metrics, plots, score
from equipoise.decisions import DailyMonitor, certify_threshold
from equipoise.plots.style import BLUE, COLORS, GRAY, RED, dress

DOCS = Path(__file__).resolve().parents[2] / "docs"


def names_of(page: str, folder: Path | None = None) -> SimpleNamespace:
    """Run the Python blocks of a page, by default in an empty folder, and return the names they define."""
    names: dict[str, Any] = {"__name__": "page"}
    before = Path.cwd()
    text = (DOCS / page).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder or empty)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for found in CODE.finditer(text):
                    exec(compile(found[1], page, "exec"), names)
        finally:
            os.chdir(before)
    plt.close("all")
    return SimpleNamespace(**names)


def diagrams(parts: Mapping[str, Predictions], **options: Any) -> Figure:
    """Draw reliability diagrams side by side."""
    return plots.draw_reliability_diagrams(
        {name: metrics.reliability_curve(rows, **options) for name, rows in parts.items()}
    )


def trees() -> Figure:
    page = names_of("recipes/trees.md")
    forest = page.predictions_of(page.models["forest"], page.X_test, page.y_test)
    return diagrams({"Forest": forest, "Boosting": page.raw, "Boosting, calibrated": page.better})


def rare_events() -> Figure:
    page = names_of("recipes/rare-events.md")
    return diagrams(
        {"With class weights": page.test, "After Platt scaling": page.repaired},
        target="positive",
    )


def scores() -> Figure:
    page = names_of("recipes/scores.md")
    figure, axes = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
    similarity, relevant = page.similarity[2000:], page.relevant[2000:]
    edges = np.quantile(similarity, np.linspace(0, 1, 13))
    bins = np.clip(np.searchsorted(edges, similarity) - 1, 0, 11)
    counts = np.bincount(bins, minlength=12)
    middle, share = (np.bincount(bins, one, minlength=12) / counts for one in (similarity, relevant))
    grid = np.linspace(similarity.min(), similarity.max(), 200)
    axes.plot(
        grid, page.calibrator(Predictions(logits=20 * grid)).probs[:, 1], color=BLUE, label="calibrator"
    )
    axes.plot(middle, share, "o", color=RED, label="test pairs, twelve bins")
    axes.legend(frameon=False, loc="upper left")
    dress(axes, x="similarity", y="relevant")
    return figure


def llm_judge() -> Figure:
    page = names_of("recipes/llm-judge.md")
    return diagrams({"Stated confidence": page.rest, "After isotonic regression": page.calibrator(page.rest)})


def tokens() -> Figure:
    page = names_of("recipes/tokens.md")
    return diagrams(
        {"Product of token probabilities": page.test, "After beta calibration": page.calibrator(page.test)}
    )


def segmentation() -> Figure:
    page = names_of("recipes/segmentation.md")
    return diagrams({"Pixels before": page.test, "Pixels, scaled": page.calibrator(page.test)})


def detection() -> Figure:
    page = names_of("recipes/detection.md")
    small, large = (page.test.take(page.test.groups["size"] == kind) for kind in ("small", "large"))
    return diagrams(
        {
            "Small boxes": small,
            "Small, calibrated with all": page.calibrator(small),
            "Large, calibrated with all": page.calibrator(large),
        }
    )


def class_weights() -> Figure:
    page = names_of("recipes/class-weights.md")
    return diagrams(
        {"Balanced class weights": page.test, "Weights undone": page.undone(page.test)}, target="positive"
    )


def continuous_integration() -> Figure:
    page = names_of("recipes/ci.md")
    sizes = (200, 500, 1000, 2000, 4000)
    found = [
        score(Predictions(confidence=page.confidence[:n], correct=page.correct[:n]))["ece"] for n in sizes
    ]
    figure, axes = plt.subplots(figsize=(5.5, 3.0), layout="constrained")
    for index, one in enumerate(found):
        color = BLUE if one.high <= 0.05 else RED
        axes.plot([index, index], [100 * one.low, 100 * one.high], color=color, linewidth=2)
        axes.plot(index, 100 * one.value, "o", color=color)
    axes.axhline(5, color=GRAY, linestyle="--")
    axes.text(len(sizes) - 0.5, 5.15, "limit", ha="right", color=GRAY)
    axes.set_xticks(range(len(sizes)), [f"{n:,}" for n in sizes])
    axes.set_ylim(bottom=0)
    dress(axes, x="rows", y="ECE (%) with 95% interval")
    return figure


def model_card() -> Figure:
    page = names_of("recipes/model-card.md")
    return diagrams({"The model of the card": page.predictions})


def llm() -> Figure:
    page = names_of("llm.md")
    return diagrams(
        {name.title(): page.answers.take(page.subject == name) for name in ("law", "medicine", "history")}
    )


def coming_from() -> Figure:
    page = names_of("coming-from.md")
    return diagrams({"Before": page.test, "After TemperatureScaling": page.better})


def choose_calibrator() -> Figure:
    page = names_of("choose-a-calibrator.md")
    return diagrams({"Before": page.test, f"After {page.choice.calibrator.kind}": page.better})


def decide() -> Figure:
    page = names_of("decide.md")
    certificates = [
        certify_threshold(page.labelled, max_error=error).certificate for error in (0.05, 0.1, 0.15, 0.2)
    ]
    curve = metrics.risk_coverage(page.labelled)
    return plots.draw_risk_coverage({"labeled rows": curve}, certificates=certificates).figure


def production() -> Figure:
    """Draw the evidence of a monitor whose model loses five points after thirty days."""
    rng = np.random.default_rng(0)
    monitor, evidence = DailyMonitor(), []
    for day in range(45):
        claimed = rng.uniform(0.6, 1, 500)
        right = rng.random(500) < claimed - (0.05 if day >= 30 else 0.0)
        rows = Predictions(confidence=claimed, correct=right)
        month, number = divmod(day, 28)
        found = monitor.watch(rows, day=f"2026-{month + 1:02}-{number + 1:02}")
        evidence.append(found.mean_evidence)
    figure, axes = plt.subplots(figsize=(6.5, 3.0), layout="constrained")
    axes.semilogy(np.arange(1, 46), evidence, color=BLUE)
    axes.axhline(found.limit, color=RED, linestyle="--")
    axes.text(1, 2 * found.limit, "alarm at 20", color=RED)
    axes.axvline(30.5, color=GRAY, linestyle=":")
    axes.text(30, 1e12, "the model loses 5 points ", ha="right", color=GRAY)
    dress(axes, x="day", y="mean evidence")
    return figure


def corrupted_digits() -> Figure:
    from equipoise.data import corrupt, load

    digits = load("digits")
    shown = {"clean": digits}
    for kind, severity in (
        ("gaussian_noise", 1),
        ("gaussian_noise", 3),
        ("gaussian_noise", 5),
        ("contrast", 5),
    ):
        shown[f"{kind}, {severity}"] = corrupt(digits, kind, severity=severity)
    figure, grid = plt.subplots(len(shown), 8, figsize=(7, 4.2), layout="constrained")
    for row, (name, dataset) in zip(grid, shown.items(), strict=True):
        images = dataset.inputs[dataset.rows("test")[:8]]
        for axes, image in zip(row, images, strict=True):
            axes.imshow(np.asarray(image).squeeze(), cmap="gray", vmin=0, vmax=255)
            axes.axis("off")
        row[0].set_title(name, loc="left", fontsize=9)
    return figure


def chance_ece() -> Figure:
    """Draw the ECE that a perfectly calibrated model has by chance, by the number of rows."""
    rng = np.random.default_rng(0)
    sizes = np.array([100, 200, 500, 1000, 2000, 5000, 10_000, 20_000])
    found = []
    for n in sizes:
        confidence = rng.uniform(0.5, 1, (200, n))
        right = rng.random((200, n)) < confidence
        errors = [
            metrics.expected_calibration_error(Predictions(confidence=one, correct=hit))
            for one, hit in zip(confidence, right, strict=True)
        ]
        found.append(np.quantile(errors, [0.05, 0.5, 0.95]))
    low, middle, high = 100 * np.array(found).T
    figure, axes = plt.subplots(figsize=(6, 3.0), layout="constrained")
    axes.fill_between(sizes, low, high, color=COLORS[5], alpha=0.4, label="90% of samples")
    axes.plot(sizes, middle, "o-", color=BLUE, label="median of 200 samples")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    dress(axes, x="rows", y="ECE of a calibrated model (%)")
    return figure


def intervals() -> Figure:
    """Draw 50 test sets of the same overconfident model, with the interval of each ECE."""
    rng = np.random.default_rng(1)

    def sample(n: int) -> Predictions:
        confidence = rng.uniform(0.5, 1, n)
        return Predictions(confidence=confidence, correct=rng.random(n) < 0.9 * confidence)

    truth = float(metrics.expected_calibration_error(sample(2_000_000)))
    figure, axes = plt.subplots(figsize=(7, 3.0), layout="constrained")
    for index in range(50):
        one = score(sample(1000), n_resamples=300)["ece"]
        color = BLUE if one.low <= truth <= one.high else RED
        axes.plot([index, index], [100 * one.low, 100 * one.high], color=color, linewidth=1.5)
        axes.plot(index, 100 * one.value, ".", color=color)
    axes.axhline(100 * truth, color=GRAY, linestyle="--")
    axes.set_ylim(bottom=0)
    dress(axes, x="test sets of 1,000 rows, the same model", y="ECE (%) with 95% interval")
    return figure


def training_speed() -> Figure:
    """Draw the first ratios of the table on the page."""
    text = (DOCS / "training-speed.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\|([^|]*)\| (small CNN|ResNet-20) \| (\d) \| ([\d.]+) \(([\d.]+) to ([\d.]+)\)", text, re.MULTILINE
    )
    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    machine, labels = "", []
    for index, (name, network, threads, middle, low, high) in enumerate(rows):
        machine = name.strip() or machine
        labels.append(f"{machine.split(', before')[0]}: {network}, {threads} thread{'s' * (threads != '1')}")
        axes.plot([float(low), float(high)], [index, index], color=BLUE, linewidth=2)
        axes.plot(float(middle), index, "o", color=BLUE)
    axes.axvline(1, color=GRAY, linestyle="--")
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.invert_yaxis()
    dress(axes, x="steps per second of fit, divided by those of a research loop", y="")
    return figure


def estimators() -> Figure:
    page = names_of("integrations/sklearn.md")
    return page.figure


PAGE_FIGURES: dict[str, Callable[[], Figure]] = {
    "recipe-trees": trees,
    "recipe-rare-events": rare_events,
    "recipe-scores": scores,
    "recipe-llm-judge": llm_judge,
    "recipe-tokens": tokens,
    "recipe-segmentation": segmentation,
    "recipe-detection": detection,
    "recipe-class-weights": class_weights,
    "recipe-ci": continuous_integration,
    "recipe-model-card": model_card,
    "llm": llm,
    "coming-from": coming_from,
    "choose-a-calibrator": choose_calibrator,
    "decide": decide,
    "production": production,
    "data": corrupted_digits,
    "faq": chance_ece,
    "trust": intervals,
    "training-speed": training_speed,
    "sklearn": estimators,
}
