"""Never worse: how often `auto` answers with something worse than cross-entropy + temperature, and what it gains.

    python benchmarks/auto.py --data FOLDER [--seeds 20] [--budget 5] [--tasks noisy_digits,few_fashion]

Each repetition draws other splits, other label noise and other training seeds, lets `auto` answer within the budget,
and scores the answer and the baseline on ``test``, which `auto` does not read. FOLDER holds fashion_mnist.npz; without
it the task with Fashion-MNIST is left out. One line of JSON per repetition goes to --out, and finished ones are not
repeated.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t as student
from sklearn.datasets import load_breast_cancer, load_digits

from equipoise.calibrators import TemperatureScaling
from equipoise.calibrators.ensemble import average_predictions
from equipoise.evaluate.final_test import choose_and_test
from equipoise.experiments import Execution, ScoringOptions, Spec
from equipoise.experiments.auto import climb, held_out_rows, parse_budget

LEVEL = 0.95
QUICK = {"name": "quick", "epochs": 15}


def digits(rng: np.random.Generator) -> dict[str, Any]:
    x, y = load_digits(return_X_y=True)
    return {"x": (x / 16).astype(np.float32), "y": y}


def noisy_digits(rng: np.random.Generator) -> dict[str, Any]:
    """A fifth of all labels is drawn at random, in every split."""
    arrays = digits(rng)
    flipped = rng.random(len(arrays["y"])) < 0.2
    return arrays | {"y": np.where(flipped, rng.integers(0, 10, len(flipped)), arrays["y"])}


def breast_cancer(rng: np.random.Generator) -> dict[str, Any]:
    x, y = load_breast_cancer(return_X_y=True)
    return {"x": x.astype(np.float32), "y": y}


def overlapping(rng: np.random.Generator) -> dict[str, Any]:
    """Three normal classes that overlap, in ten dimensions."""
    y = rng.integers(0, 3, 4000)
    x = rng.normal(size=(4000, 10)) + 0.6 * np.eye(3, 10)[y] * 2
    return {"x": x.astype(np.float32), "y": y}


def few_fashion(rng: np.random.Generator, file: Path) -> dict[str, Any]:
    """2,000 images to train on and hold out, 5,000 to test on."""
    with np.load(file) as stored:
        some, test = (
            rng.permutation(len(stored[f"y_{part}"]))[:n] for part, n in (("train", 2000), ("test", 5000))
        )
        return {
            "x_train": stored["x_train"][some],
            "y_train": stored["y_train"][some],
            "x_test": stored["x_test"][test],
            "y_test": stored["y_test"][test],
        }


def tasks(
    folder: Path | None,
) -> dict[str, tuple[Callable[[np.random.Generator], dict[str, Any]], dict[str, Any]]]:
    """Return the data and the rest of the spec, by name."""
    found: dict[str, Any] = {
        "noisy_digits": (noisy_digits, {"model": "mlp", "recipe": QUICK}),
        "digits": (digits, {"model": "mlp", "recipe": QUICK}),
        "overlapping": (overlapping, {"model": "mlp", "recipe": QUICK}),
        "breast_cancer": (breast_cancer, {"model": "mlp", "recipe": QUICK}),
        # A linear network: all members find the same minimum, so that only calibrators can gain.
        "linear_digits": (
            noisy_digits,
            {"model": {"name": "mlp", "options": {"hidden": []}}, "recipe": QUICK},
        ),
    }
    if folder is not None and (folder / "fashion_mnist.npz").exists():
        file = folder / "fashion_mnist.npz"
        found["few_fashion"] = (lambda rng: few_fashion(rng, file), {"model": "mlp", "recipe": QUICK})
    return found


def repeat(name: str, task: tuple[Any, dict[str, Any]], seed: int, budget: str) -> dict[str, Any]:
    """Return what one call answered, and what that is worth on ``test``."""
    make, rest = task
    folder = Path(tempfile.mkdtemp())
    np.savez(folder / "data.npz", **make(np.random.default_rng([seed, 36])))
    options = {"path": str(folder / "data.npz"), "test": 0.4}
    spec = Spec.from_table(
        {"data": {"name": "npz", "seed": seed, "options": options}, "seed": 100 * seed, **rest}
    )
    found = climb(
        spec,
        folder / "runs",
        budget=parse_budget(budget),
        scoring=ScoringOptions(n_resamples=2),
        execution=Execution(quiet=True, threads=1),
        workers=1,
    )
    sources = {source: held_out_rows(runs) for source, runs in found.members.items()}
    test = choose_and_test(sources, planned=found.planned, level=LEVEL)

    def losses(source: str, calibrator: Any) -> np.ndarray:
        rows = average_predictions([run.predictions("test") for run in found.members[source]])
        probs = calibrator(rows.with_split(None)).probs
        return -np.log(np.maximum(probs[np.arange(len(rows)), rows.labels], 1e-38))

    def scaled(source: str) -> np.ndarray:
        return losses(source, TemperatureScaling().fit(sources[source]))

    base, answer = scaled("ce"), losses(test.answer.source, test.calibrator)
    planned = scaled(found.planned or "ce")
    shutil.rmtree(folder)
    return {
        "task": name,
        "seed": seed,
        "budget": budget,
        "answer": test.answer.label,
        "n_held_out": len(sources["ce"]),
        "n_test": len(base),
        "base": base.mean(),
        "gain": (base - answer).mean(),
        "planned_gain": (base - planned).mean(),
        "p_worse": p_value(answer - base),
        "p_better": p_value(base - answer),
        "seconds": found.seconds,
    }


def p_value(excess: np.ndarray) -> float:
    """Return the one-sided p-value of no excess; 1 if nothing differs."""
    error = excess.std(ddof=1) / np.sqrt(len(excess))
    return float(student.sf(excess.mean() / error, len(excess) - 1)) if error else 1.0


def summarize(rows: list[dict[str, Any]]) -> str:
    """Return a table: one line per task."""
    lines = [
        "| task | runs | held-out rows | not the baseline | worse on test, p < 5% | better on test, p < 5% "
        "| baseline NLL | mean gain | mean gain of the planned ensemble |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == name]
        mean = {
            key: float(np.mean([row[key] for row in own]))
            for key in ("base", "gain", "planned_gain", "n_held_out")
        }
        other = sum(row["gain"] != 0 for row in own)
        worse, better = (sum(row[key] < 1 - LEVEL for row in own) for key in ("p_worse", "p_better"))
        lines.append(
            f"| {name} | {len(own)} | {mean['n_held_out']:.0f} | {other} | {worse} | {better} | {mean['base']:.4f} | "
            f"{100 * mean['gain'] / mean['base']:.1f}% | {100 * mean['planned_gain'] / mean['base']:.1f}% |"
        )
    worse = sum(row["p_worse"] < 1 - LEVEL for row in rows)
    lines.append(f"\nworse on test at the level of 5%: {worse} of {len(rows)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", default="5")
    parser.add_argument("--tasks", default="")
    parser.add_argument("--out", type=Path, default=Path("auto.jsonl"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    known = tasks(arguments.data)
    chosen = arguments.tasks.split(",") if arguments.tasks else list(known)
    rows = (
        [json.loads(line) for line in arguments.out.read_text().splitlines()]
        if arguments.out.exists()
        else []
    )
    done = {(row["task"], row["seed"], row["budget"]) for row in rows}
    for seed in range(arguments.seeds):
        for name in chosen:
            if (name, seed, arguments.budget) not in done:
                rows.append(repeat(name, known[name], seed, arguments.budget))
                with arguments.out.open("a") as stream:
                    stream.write(json.dumps(rows[-1]) + "\n")
    print(summarize([row for row in rows if row["budget"] == arguments.budget and row["task"] in chosen]))


if __name__ == "__main__":
    main()
