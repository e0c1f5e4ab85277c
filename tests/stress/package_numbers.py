"""Numbers of every part of the package for some random rows: the same, whatever the environment is.

Also a script for a process with an environment of its own: ``python -P package_numbers.py FOLDER SEED SETTINGS``, where
SETTINGS is JSON; the numbers go to ``numbers.json`` in the folder.
"""

import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

#: Calibrators and losses that together use most of what the others do.
CALIBRATORS = ("temperature", "vector", "isotonic", "beta", "histogram", "spline")
LOSSES = ("focal", "label_smoothing", "brier", "adafocal")


def apply_settings(settings: dict[str, Any]) -> None:
    """Change what a program may change for its whole process."""
    import torch

    if "device" in settings:
        torch.set_default_device(settings["device"])
    if "dtype" in settings:
        torch.set_default_dtype(getattr(torch, settings["dtype"]))
    if "seterr" in settings:
        np.seterr(all=settings["seterr"])
    if "no_grad" in settings:
        torch.set_grad_enabled(False)


def numbers(folder: Path, seed: int, *, parts: int = 2) -> dict[str, float]:
    """Return numbers by name; files are written into the folder."""
    found: dict[str, float] = {}
    for part in range(parts):
        chance = np.random.default_rng([seed, part])
        n, k = int(chance.integers(30, 120)), int(chance.choice([2, 3, 10]))
        logits = chance.normal(size=(n, k)).astype((np.float32, np.float64)[part % 2]) * 2
        labels = np.where(chance.random(n) < 0.6, logits.argmax(1), chance.integers(0, k, n))
        labels[:k] = np.arange(k)
        for name, value in _of_rows(logits, labels, folder).items():
            found[f"{part} {name}"] = float(value)
    return found


def _of_rows(logits: np.ndarray, labels: np.ndarray, folder: Path) -> dict[str, Any]:
    import torch

    from equipoise import Predictions, read_predictions, score, write_predictions
    from equipoise.catalogue import CATALOGUE
    from equipoise.cli import main

    MAPS = CATALOGUE["calibrators"]
    OF_LOGITS = CATALOGUE["losses"]
    from equipoise.losses import Adaptive

    rows = Predictions(logits=logits, labels=labels, groups={"site": np.arange(len(labels)) % 2})
    found: dict[str, Any] = {
        f"score {key}": value.value for key, value in score(rows, n_resamples=5).scores.items()
    }
    for ending in ("npz", "csv", "parquet", "safetensors"):
        write_predictions(rows, folder / f"rows.{ending}")
        found[f"read {ending}"] = np.abs(read_predictions(folder / f"rows.{ending}").probs).max(1).sum()
    for key in CALIBRATORS:
        found[f"calibrator {key}"] = np.square(
            MAPS[key].make().fit(logits, labels)(logits.astype(np.float64))
        ).sum()
    given = torch.from_numpy(logits.astype(np.float64)).requires_grad_()
    for key in LOSSES:
        with torch.device("cpu"):  # buffers follow the default device, and on `meta` they have no values
            loss = OF_LOGITS[key].make()
        if isinstance(loss, Adaptive):
            loss.update(given.detach(), torch.from_numpy(labels))
        found[f"loss {key}"] = loss(given, torch.from_numpy(labels)).detach().sum()
    out = io.StringIO()
    with redirect_stdout(out):
        code = main(["audit", str(folder / "rows.npz"), "--json", "--resamples", "5"])
    found["audit code"] = code
    if code == 0:
        scores = json.loads(out.getvalue())["scores"]
        found |= {f"audit {key}": entry["value"] for key, entry in scores.items()}
    return found


if __name__ == "__main__":
    target = Path(sys.argv[1])
    apply_settings(json.loads(sys.argv[3]))
    (target / "numbers.json").write_text(json.dumps(numbers(target, int(sys.argv[2]))))
