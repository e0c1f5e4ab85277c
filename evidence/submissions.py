"""Submissions to the leaderboard: the rows to train on, checks of predictions, and their scores."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from acting import endpoint_rows
from collect import gather
from pairs import BASELINE, METRICS, RESAMPLES, paired_row
from run import comparisons
from tidy import HERE, folder_of, read, write

from equipoise import Predictions, read_predictions
from equipoise.calibrators import TemperatureScaling
from equipoise.core.arrays import Array
from equipoise.core.checksums import content_checksum
from equipoise.core.choices import ScoreSettings
from equipoise.core.errors import DataError
from equipoise.core.rows import check_disjoint
from equipoise.evaluate.standard_error import error_over_seeds
from equipoise.experiments import Execution
from equipoise.experiments.build.data import data_of
from equipoise.experiments.runs.json_files import read_json, write_json
from equipoise.metrics.row_draws import RowDraws, draw_rows

SPLITS = ("tune", "calib", "test")
ENDINGS = (".npz", ".csv", ".parquet")
NAME = re.compile(r"[A-Za-z0-9][\w.+=-]{0,63}")


def write_splits(benchmark: str, folder: str, out: Path) -> None:
    """Write inputs, labels and row ids of every split of a benchmark to one file.

    Args:
        benchmark: Its name.
        folder: The folder that holds the datasets.
        out: A ``.npz`` file with ``x_train``, ``y_train``, ``id_train`` and so on.
    """
    out = out.expanduser().resolve()
    if out.suffix != ".npz":
        raise DataError(f"{out}: expected the name of a .npz file.")
    root = str(Path(folder).expanduser().resolve())
    if not Path(root).is_dir():
        raise DataError(f"{root}: expected the folder that holds the datasets.")
    os.chdir(root)  # paths of tables in specs are relative to it
    data = data_of(comparisons(benchmark, [0])[0].specs[0], Execution(root=root))
    arrays = {}
    for split, rows in data.splits.items():
        columns = {"x": data.inputs, "y": data.labels, "lengths": data.lengths}
        arrays |= {f"{key}_{split}": np.asarray(one[rows]) for key, one in columns.items() if one is not None}
        arrays[f"id_{split}"] = rows.numpy()
    np.savez_compressed(out, **arrays)
    print(f"{out}: {', '.join(f'{split} {len(rows):,}' for split, rows in data.splits.items())} rows")


def write_reference(benchmark: str, runs: Path) -> None:
    """Write what submissions to a benchmark are compared with, from finished runs of cross-entropy."""
    group = gather(benchmark, runs)
    base = {group.specs[run.name].seed: run for run in group.methods[BASELINE]}
    found = {
        seed: {split: in_order(base[seed].predictions(split)) for split in SPLITS} for seed in sorted(base)
    }
    write_json(_reference_file(benchmark), reference_of(benchmark, found))


def reference_of(benchmark: str, found: Mapping[int, Mapping[str, Predictions]]) -> dict[str, Any]:
    """Return digests of the rows, and what cross-entropy scores after temperature scaling in shared resamples.

    Args:
        benchmark: Its name.
        found: Predictions of cross-entropy by seed and split, in the order of their ids.
    """
    drawn = [scaled_draws(one) for one in found.values()]
    first = next(iter(found.values()))
    means = {metric: np.mean([one.draws[metric] for one in drawn], axis=0) for metric in METRICS}
    return {
        "benchmark": benchmark,
        "seeds": list(found),
        "classes": first["test"].n_classes,
        "splits": {split: row_digests(rows) for split, rows in first.items()},
        "values": {metric: [float(f"{one.values[metric]:.7g}") for one in drawn] for metric in METRICS},
        "mean_draws": {metric: [float(f"{value:.4g}") for value in mean] for metric, mean in means.items()},
    }


def _reference_file(benchmark: str) -> Path:
    return HERE / "leaderboard" / "reference" / f"{benchmark}.json"


def read_reference(benchmark: str) -> dict[str, Any]:
    """Read what methods of a benchmark are compared with."""
    file = _reference_file(benchmark)
    if not file.exists():
        raise DataError(
            f"{benchmark} has no reference yet. `leaderboard.py reference` writes it from finished runs."
        )
    return read_json(file)


def in_order(predictions: Predictions) -> Predictions:
    """Return predictions in the order of their ids, so that all have the same rows in the same resamples."""
    return predictions.take(np.argsort(predictions.rows.hashes))


def row_digests(predictions: Predictions) -> dict[str, Any]:
    """Return the number of rows, and digests of ids and labels in the order of ids."""
    return {
        "rows": len(predictions),
        "ids": content_checksum(np.asarray(predictions.rows.hashes))[:16],
        "labels": content_checksum(np.asarray(predictions.labels, dtype=np.int64))[:16],
    }


def scaled_draws(found: Mapping[str, Predictions]) -> RowDraws:
    """Return what predictions score after temperature scaling, in the resamples that all methods share."""
    return shared_draws(TemperatureScaling().fit(found["calib"])(found["test"]))


def shared_draws(predictions: Predictions) -> RowDraws:
    """Return what predictions, in the order of their ids, score in the resamples that all methods share."""
    return draw_rows(predictions, ScoreSettings(n_resamples=RESAMPLES))


def add_submission(args: argparse.Namespace) -> None:
    """Check predictions, score them, and write the files of a submission.

    Args:
        args: Of the command line.
    """
    reference = read_reference(args.benchmark)
    _check_name(args.benchmark, args.method)
    if not args.link.startswith(("https://", "http://")):
        raise DataError(f"--link must be an address that starts with https://, got {args.link!r}.")
    found = read_submission(args.folder, reference)
    name = f"leaderboard/submissions/{args.benchmark}/{args.method}"
    about = {"benchmark": args.benchmark, "method": args.method}
    scores = [row for seed, splits in found.items() for row in endpoint_rows({**about, "seed": seed}, splits)]
    drawn = {seed: scaled_draws(splits) for seed, splits in found.items()}
    write(f"{name}/scores.csv", scores)
    write(f"{name}/paired.csv", paired_rows(args.method, drawn, reference))
    more = {"submitted_by": args.name, "link": args.link, "command": args.command, "cost": args.cost}
    digest = content_checksum([[np.asarray(one["test"].scores) for one in found.values()]])
    write_json(HERE / name / "about.json", {**about, **more, "predictions": digest[:16]})


def _check_name(benchmark: str, method: str) -> None:
    if not NAME.fullmatch(method):
        raise DataError(f"{method!r} is not a name: use up to 64 letters, digits and any of _ . + = -")
    ours = {row["method"] for row in read(f"{folder_of(benchmark)}/runs.csv")}
    if method in ours or (HERE / "leaderboard" / "submissions" / benchmark / method).exists():
        raise DataError(f"{method} is on the leaderboard of {benchmark} already. Choose another name.")


def read_submission(folder: Path, reference: Mapping[str, Any]) -> dict[int, dict[str, Predictions]]:
    """Read and check predictions, in the order of their ids, by seed and split.

    Args:
        folder: One folder per seed, with files ``tune``, ``calib`` and ``test``.
        reference: What submissions to the benchmark are compared with.

    Raises:
        DataError: If seeds, rows or labels are not those of the benchmark, or something is not a distribution.
        SplitError: If two splits share rows.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: expected a folder with one folder per seed.")
    seeds = sorted(int(one.name) for one in folder.iterdir() if one.is_dir() and one.name.isdecimal())
    if seeds != reference["seeds"]:
        wanted = reference["seeds"]
        raise DataError(
            f"{folder}: expected {len(wanted)} folders, named {wanted[0]} to {wanted[-1]}, one per seed; got "
            f"{len(seeds)}."
        )
    found = {seed: dict(_read_seed(folder / str(seed), reference)) for seed in seeds}
    digests: dict[str, int] = {}
    for seed, splits in found.items():
        first = digests.setdefault(content_checksum(np.asarray(splits["test"].scores)), seed)
        if first != seed:
            raise DataError(
                f"{folder}: seeds {first} and {seed} have the same predictions. Train every seed."
            )
    return found


def _read_seed(folder: Path, reference: Mapping[str, Any]) -> Iterator[tuple[str, Predictions]]:
    """Yield the checked predictions of one seed."""
    found = {split: _read_split(folder, split, reference["classes"]) for split in SPLITS}
    for judged, fitted in combinations(reversed(SPLITS), 2):
        problem = f"rows of {judged} are rows of {fitted} too. Predict the rows that `splits` wrote."
        check_disjoint(found[judged].rows, found[fitted].rows, where=str(folder), problem=problem)
    for split, rows in found.items():
        digests, wanted = row_digests(rows), reference["splits"][split]
        for key, what in (("rows", "number of rows"), ("ids", "row ids"), ("labels", "labels")):
            if digests[key] != wanted[key]:
                raise DataError(
                    f"{folder}/{split}: the {what} are not those of {reference['benchmark']} ({len(rows):,} rows, "
                    f"expected {wanted['rows']:,}). `leaderboard.py splits` writes them."
                )
        yield split, rows


def _read_split(folder: Path, split: str, n_classes: int) -> Predictions:
    files = [file for ending in ENDINGS if (file := folder / f"{split}{ending}").exists()]
    if len(files) != 1:
        raise DataError(f"{folder}: expected one file {split} ({', '.join(ENDINGS)}), got {len(files)}.")
    try:
        found = read_predictions(files[0], split=split, ids="id")
    except DataError as error:
        raise DataError(f"seed {folder.name}: {error}") from None
    if not found.has_scores or found.n_classes != n_classes:
        raise DataError(f"{files[0]}: expected probabilities or logits of {n_classes} classes.")
    return in_order(found)


def paired_rows(
    method: str, drawn: Mapping[int, RowDraws], reference: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield rows as in ``paired.csv``: a method against cross-entropy after temperature scaling.

    Only the mean draws of cross-entropy over seeds are kept, which leaves the row error a little too large.

    Args:
        method: Its name.
        drawn: What it scores in shared resamples, by seed.
        reference: What methods of the benchmark are compared with.
    """
    places = [reference["seeds"].index(seed) for seed in drawn]
    for metric in METRICS:
        mean: Array = np.array(reference["mean_draws"][metric])
        base = [reference["values"][metric][place] for place in places]
        gaps = [one.values[metric] - versus for one, versus in zip(drawn.values(), base, strict=True)]
        draws = [one.draws[metric] - mean for one in drawn.values()]
        shared = error_over_seeds(gaps, draws, next(iter(drawn.values())).plan.n_units).rows
        for seed, gap, versus, draw in zip(drawn, gaps, base, draws, strict=True):
            half = 1.96 * float(np.std(draw, ddof=1))
            row = paired_row(method, metric, seed, versus + gap, versus, gap, half)
            yield {**row, "shared_error": shared if len(drawn) > 1 else None}
