"""Schematic figures of the guides: boxes and arrows."""

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise.plots.style import BLUE, COLORS, GRAY, INK

PALE = {"blue": "#dcebf7", "gray": "#eceff1", "orange": "#f8d8c6", "green": "#c8e6c9"}


def canvas(width: float, height: float, *, x: tuple[float, float], y: tuple[float, float]):
    """Return a figure and axes without a frame."""
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.set(xlim=x, ylim=y)
    axes.axis("off")
    return figure, axes


def box(axes: Axes, x: float, y: float, text: str, *, color: str = "blue", bold: bool = True) -> None:
    """Write text in a rounded box around a point."""
    weight = "bold" if bold else "normal"
    frame = {"boxstyle": "round,pad=0.5", "facecolor": PALE[color], "edgecolor": BLUE}
    axes.text(x, y, text, ha="center", va="center", fontweight=weight, fontsize=9, bbox=frame)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow between two points."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": INK})


def note(axes: Axes, x: float, y: float, text: str) -> None:
    """Write a small remark."""
    axes.text(x, y, text, ha="center", va="top", fontsize=8.5, color=INK)


def chain(steps: list[tuple[str, str]], *, width: float = 8.0) -> Figure:
    """Draw steps from left to right, each with a remark below it."""
    figure, axes = canvas(width, 1.7, x=(-0.6, len(steps) - 0.4), y=(-0.9, 1.1))
    for index, (name, remark) in enumerate(steps):
        box(axes, index, 0.5, name)
        note(axes, index, -0.1, remark)
        if index:
            arrow(axes, (index - 0.66, 0.5), (index - 0.34, 0.5))
    return figure


def splits() -> Figure:
    """Draw the rows of a data set as four splits, and what each is used for."""
    figure, axes = canvas(8, 1.9, x=(0, 1), y=(-1.25, 0.5))
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
        note(axes, left + share / 2, -0.62, use)
        left += share
    return figure


def run_stages() -> Figure:
    """Draw the stages of a run and the files that each writes."""
    return chain(
        [
            ("train", "history.csv, last.pt"),
            ("predict", "predictions/*.npz"),
            ("calibrate", "calibrators/*"),
            ("score", "scores/*.json"),
            ("table, report", "read only"),
        ]
    )


def ladder() -> Figure:
    """Draw the candidates of `auto` in their order, and the test at the end."""
    return chain(
        [
            ("cross-entropy", "then its EMA"),
            ("ensemble", "of the first five"),
            ("calibrators", "sms, vector, ..."),
            ("losses", "and augmentation,\nsuccessive halving"),
            ("final test", "on kept rows, against\ncross-entropy + temperature"),
        ],
        width=9.0,
    )


def body_and_head() -> Figure:
    """Draw the two parts of a network and the methods that use each."""
    return chain(
        [
            ("inputs", "(n, 3, 32, 32)"),
            ("body", "network.body"),
            ("features", "(n, 64)\nused by gamma-net"),
            ("head", "network.head\nmeta-calibration"),
            ("logits", "(n, 10)\nlosses, calibrators"),
        ]
    )


def serving() -> Figure:
    """Draw what travels in one served graph or file."""
    return chain(
        [
            ("inputs", "one batch"),
            ("network", "weights"),
            ("calibrator", "fitted on calib"),
            ("probs", "calibrated"),
            ("rule", "certified threshold"),
            ("accept", "true or false"),
        ]
    )


def adapters() -> Figure:
    """Draw where each adapter attaches to the path from training to serving."""
    return chain(
        [
            ("train", "Lightning, Trainer,\nskorch, your loop"),
            ("log", "TensorBoard, MLflow,\nWeights & Biases"),
            ("measure", "torchmetrics,\nscikit-learn scorers"),
            ("calibrate", "scikit-learn\nestimators, modules"),
            ("serve", "ONNX, one\nsafetensors file"),
        ]
    )


def objective_step() -> Figure:
    """Draw how the loop, an objective, a learner and a loss work together in a step."""
    return chain(
        [
            ("fit", "epochs, history,\ncheckpoints"),
            ("objective", "owns the step"),
            ("learner", "network and\noptimizer"),
            ("loss", "(logits, labels)\nto a value"),
            ("learner.step", "gradient, clip,\nupdate"),
        ]
    )


def own_code() -> Figure:
    """Draw which part of a comparison each file of code replaces."""
    return chain(
        [
            ("data", "points.py:load"),
            ("model", "network.py:Net"),
            ("method", "loss.py:smooth"),
            ("calibrators", "shrink.py:Shrunk"),
            ("metrics", "metric.py:hits"),
        ]
    )


def forms() -> Figure:
    """Draw the four forms of predictions and the questions that each can answer."""
    figure, axes = canvas(8, 3.1, x=(0, 10), y=(-0.2, 4.4))
    rows = [
        ("logits  (n, k)", "everything, with every calibrator"),
        ("probabilities  (n, k)", "everything; exact zeros and rounding are handled by a rule"),
        ("predicted class, confidence, label", "calibration of the answer, accuracy, classes and groups"),
        ("confidence, correct", "calibration of the answer, groups; no classes"),
    ]
    for index, (form, answers) in enumerate(rows):
        height = 3.8 - index
        box(axes, 2.2, height, form, color=("blue", "blue", "orange", "gray")[index])
        arrow(axes, (4.2, height), (4.8, height))
        axes.text(5.0, height, answers, va="center", fontsize=9)
    note(axes, 2.2, 0.25, "less information further down")
    return figure


def cluster() -> Figure:
    """Draw the runs of a comparison, shared out to machines that write into one folder."""
    figure, axes = canvas(8, 3.0, x=(0, 10), y=(0, 4.2))
    box(axes, 1.2, 2.0, "mine.toml\n4 methods x 6 seeds")
    for index, height in enumerate((3.5, 2.0, 0.5)):
        box(axes, 5.0, height, f"--part {index + 1}/3\n8 runs", color="gray", bold=False)
        arrow(axes, (2.6, 2.0), (4.1, height))
        arrow(axes, (5.9, height), (7.4, 2.0))
    box(axes, 8.5, 2.0, "/shared/runs\ntable, report", color="green")
    return figure


def sizes(megabytes: dict[str, float]) -> Figure:
    """Draw how large an environment is after each of the usual installations."""
    figure, axes = plt.subplots(figsize=(6.5, 1.7), layout="constrained")
    bars = axes.barh(list(megabytes), list(megabytes.values()), color=[COLORS[2], BLUE, GRAY])
    axes.bar_label(bars, fmt="%.0f MB", padding=3, fontsize=9)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.15 * max(megabytes.values())), xlabel="size of a fresh environment (MB)")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
