"""Folders of finished runs whose predictions are given, so that nothing is trained."""

from pathlib import Path

import numpy as np

from equipoise import Predictions
from equipoise.core.writing import write_predictions
from equipoise.experiments import Component, RunFolder, Spec, write_spec
from equipoise.experiments.runs.scoring import score_run
from equipoise.experiments.runs.stages import store_predictions
from helpers.tiny_runs import TABLE, quick_options


def rows_of(split: str, *, sharpness: float = 1.0, n_rows: int = 400, seed: int = 0) -> Predictions:
    """Return predictions on rows that all seeds share; the logits are the truth times a sharpness, with noise."""
    rng = np.random.default_rng(["tune", "calib", "test"].index(split))
    logits = 2 * rng.normal(size=(n_rows, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    noise = 0.3 * np.random.default_rng([seed, 7]).normal(size=logits.shape)
    return Predictions(logits=sharpness * (logits + noise), labels=labels, split=split)


def separable(n_rows: int = 40) -> Predictions:
    """Return held-out rows whose logits separate the classes: temperature scaling warns about them."""
    labels = np.arange(n_rows) % 3
    return Predictions(logits=0.3 * np.eye(3)[labels], labels=labels, split="calib")


def finish_run(
    base: Path,
    *,
    sharpness: float = 1.0,
    calib: Predictions | None = None,
    calibrators: tuple[str | Component, ...] = ("temperature",),
    history: str = "epoch,loss,tune_ece\n0,1.0,0.2\n1,0.5,0.1\n",
    foreign: Predictions | None = None,
    **changes: object,
) -> RunFolder:
    """Write the folder of a finished run.

    Args:
        base: Where run folders go.
        sharpness: Factor of the logits.
        calib: Rows that calibrators are fitted on.
        calibrators: Which.
        history: The file of the training history.
        foreign: Predictions on rows of another dataset, called ``other``.
        **changes: What differs from the smallest experiment.
    """
    spec = Spec.from_table({**TABLE, **changes})
    folder = RunFolder(base / spec.identity)
    folder.path.mkdir(parents=True)
    write_spec(spec, folder.path / "spec.toml")
    folder.write_record("started", ["spec.toml"])
    (folder.path / "history.csv").write_text(history)
    folder.write_record("trained", ["history.csv"])
    splits = {
        split: rows_of(split, sharpness=sharpness, seed=spec.seed) for split in ("tune", "calib", "test")
    }
    store_predictions(folder, {**splits, "calib": calib or splits["calib"]}.values())
    if foreign is not None:
        file = "predictions/test-other.npz"
        write_predictions(foreign, folder.path / file)
        shift = {"name": "other", "kind": "ood", "data": "digits"}
        folder.write_record("shifted", [file], sets={"other": shift}, digests={})
    score_run(
        folder, spec, quick_options(calibrators=("identity", *calibrators))["scoring"], score_pixels=None
    )
    return folder
