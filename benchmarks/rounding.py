"""What calibrators make of probabilities with exact zeros and of rounded ones: models x rounding x calibrators.

Run: python benchmarks/rounding.py [--rows 6000] [--models ...] [--roundings ...] [--kinds ...] [--seed 0]

Each cell is the rise of a score on fresh rows by the calibrator, times 1,000: below 0 is better than no calibration.
``*``: worse by more than chance (paired test, one-sided, p < 0.001). ``!``: the fit's result has a warning.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from equipoise.calibrators.loading import KINDS
from helpers.rounding_trials import MODELS, ROUNDINGS, effects

#: The 99.9% quantile of the normal distribution.
LEVEL = 3.09


def main() -> None:
    """Print a table of each score, and count the cells that are worse without a warning."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=6000, help="fresh rows")
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--roundings", nargs="*", default=list(ROUNDINGS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--seed", type=int, default=0, help="of data and models")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    tables: dict[str, list[list[str]]] = {"log-loss": [], "Brier score": []}
    silent: Counter[str] = Counter()
    for model in given.models:
        for n_classes in (2,) if model == "language model" else (2, 5):
            for rounding in given.roundings:
                found = dict(
                    effects(
                        model,
                        rounding,
                        n_classes,
                        n_fresh=given.rows,
                        kinds=tuple(given.kinds),
                        seed=given.seed,
                    )
                )
                head = [model, str(n_classes), rounding]
                before = next(iter(found.values()))
                tables["log-loss"].append([*head, f"{before.nll_before:.3f}"])
                tables["Brier score"].append([*head, f"{before.brier_before:.3f}"])
                for kind, effect in found.items():
                    tables["log-loss"][-1].append(_cell(effect.nll, effect.warnings))
                    tables["Brier score"][-1].append(_cell(effect.brier, effect.warnings))
                    silent[kind] += effect.is_worse(LEVEL) and not effect.warnings
    for name, rows in tables.items():
        lines = [["model", "k", "rounding", "before", *given.kinds], *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        print(f"\n{name}, rise x 1,000")
        for line in lines:
            print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))
    cells = len(tables["log-loss"]) * len(given.kinds)
    print(f"\nworse by more than chance without a warning: {sum(silent.values())} of {cells} cells")
    print(", ".join(f"{kind} {count}" for kind, count in silent.items() if count))


def _cell(rise: tuple[float, float], found: tuple[str, ...]) -> str:
    mean, error = rise
    return f"{1000 * mean:.0f}{'*' * (mean > LEVEL * error + 1e-9)}{'!' * bool(found)}"


if __name__ == "__main__":
    main()
