"""Saved audit states: forged with a digest that fits, with false shapes, and merged although rows overlap."""

import copy
import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from equipoise import Predictions, score, write_predictions
from equipoise.core.records import Record, read_record, write_record
from equipoise.evaluate import AuditState, write_audit_state
from equipoise.kernels.dispatch import use_backend
from equipoise.metrics.facts import FACTS
from helpers.hostile_files import WAYS, damaged, npy_header
from stress.children import Finished, check_finished, command, warm_up
from stress.judge import Wrong
from stress.stored import replace_somewhere

KIND, VERSION = "equipoise.audit", 1
NAMES = ("monday", "tuesday", "wednesday")
NUMBERS = (-1.0, -1e-9, -1e300, 1e300, 1e18, 0.5, np.nan, np.inf, -np.inf, 2.0**63)
COUNTS = (-1, -(2**63), 2**63 - 1, 2**62, 10**12, 0, 1)
LENGTHS = (0, 1, 2, 1000, 1 << 20, 1 << 22, 1 << 23, 1 << 28, 1 << 34, 1 << 50)


class Prepared(NamedTuple):
    """Days of predictions in one form, and their states in a folder."""

    days: dict[str, Predictions]
    folder: Path


def prepare_states(folder: Path) -> list[Prepared]:
    found = []
    for form in ("logits", "probs", "top1"):
        base = folder / form
        base.mkdir()
        days = {name: _day(form, number) for number, name in enumerate(NAMES)}
        for name, rows in days.items():
            write_predictions(rows, base / f"{name}.npz")
            write_audit_state(AuditState.of(rows), base / f"{name}.state")
            write_audit_state(AuditState.of(rows), base / f"{name}.json")
        found.append(Prepared(days, base))
    monday, tuesday, brief = (
        folder / "probs/monday.state",
        folder / "probs/tuesday.state",
        ("--resamples", "5"),
    )
    warm_up(
        ["audit", monday, "--json", *brief],
        ["score", monday, "--json", *brief],
        ["audit", monday, "--against", tuesday, "--json", *brief],
        ["merge", monday, tuesday, "-o", folder / "all.state"],
        ["report", monday, "-o", folder / "page.html", *brief],
    )
    return found


def _day(form: str, number: int) -> Predictions:
    chance = np.random.default_rng([5, number])
    n = 40 + 10 * number
    probs = chance.dirichlet(np.ones(3), n)
    scores = {
        "top1": {"predicted": probs.argmax(1), "confidence": probs.max(1), "n_classes": 3},
        "logits": {"logits": np.log(probs)},
    }.get(form, {"probs": probs})
    return Predictions(
        **scores,
        labels=chance.integers(0, 3, n),
        groups={"site": np.array(["a", "b"])[np.arange(n) % 2]},
        ids=np.arange(n) + 1000 * number,
        class_names=["cat", "dog", "eel"],
    )


def try_forged_state(prepared: list[Prepared], chance: np.random.Generator, folder: Path) -> None:
    """A forged or damaged state is refused in one line with exit code 2, or gives numbers that can be."""
    source = prepared[chance.integers(len(prepared))].folder / f"{NAMES[chance.integers(3)]}.state"
    ending = str(chance.choice([".state", ".json", ".npz"]))
    path = folder / f"forged{ending}"
    how = str(chance.choice(["forge", "forge", "forge", "shape", "shape", "header", "damage"]))
    if how == "damage":
        given = source.with_suffix(".json" if ending == ".json" else ".state")
        path.write_bytes(damaged(given.read_bytes(), chance, str(chance.choice(WAYS))))
    elif how == "header":
        path = path.with_suffix(".state")
        path.write_bytes(_with_false_header(source.read_bytes(), chance))
    else:
        _write_forged(source, path, chance, how)
    words: list[str | Path] = [
        ["audit", path, "--json", "--resamples", "5"],
        ["score", path, "--json", "--resamples", "5"],
        ["merge", path, source.with_name("wednesday.state"), "-o", folder / "all.state"],
        ["report", path, "-o", folder / "page.html", "--resamples", "5"],
        ["audit", path, "--max", "ece=0.9", "--json", "--resamples", "5"],
        ["audit", source, "--against", path, "--json", "--resamples", "5"],
    ][chance.integers(6)]
    found = command(words, folder)
    gate_may_fail = "--max" in words and found.code == 1 and found.out.startswith("{")
    if gate_may_fail or check_finished(found, f"{words[0]} ({how})"):
        _check_possible(found, str(words[0]))


def _write_forged(source: Path, path: Path, chance: np.random.Generator, how: str) -> None:
    record = read_record(source, KIND, VERSION)
    arrays = {name: array.copy() for name, array in record.arrays.items()}
    plain: Any = copy.deepcopy(dict(record.plain))
    for _ in range(int(chance.integers(1, 3))):
        names = (
            [name for name in arrays if name.startswith("calibration.")]
            if chance.random() < 0.6
            else list(arrays)
        )
        name = names[chance.integers(len(names))]
        if how == "shape":
            arrays[name] = _reshaped(arrays[name], chance)
        elif chance.random() < 0.35:
            replace_somewhere(plain, chance)
        else:
            arrays[name] = _changed(arrays[name], chance)
    try:
        write_record(path, KIND, VERSION, Record(plain, arrays))
    except (ValueError, TypeError):  # what JSON cannot hold
        write_record(path.with_suffix(".state"), KIND, VERSION, Record(dict(record.plain), arrays))
        path.with_suffix(".state").rename(path)


def _changed(array: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    values = COUNTS if array.dtype.kind == "i" else NUMBERS
    changed = array.copy()
    with np.errstate(all="ignore"):
        how = chance.integers(5)
        if how == 0:
            changed[...] = values[chance.integers(len(values))]
        elif how == 1:
            changed = -changed
        elif how == 2:
            changed = changed * int(chance.choice([0, 2, 1000]))
        elif how == 3:
            changed = changed.astype(np.int64 if array.dtype.kind == "f" else np.float64)
        elif changed.size:
            changed.flat[chance.integers(changed.size)] = values[chance.integers(len(values))]
    return changed


def _reshaped(array: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Give an array another shape: without numbers and of any length, transposed, cut, or longer."""
    how = chance.integers(4)
    if how == 0:
        shape = list(array.shape or (1,))
        shape[0] = int(chance.choice(LENGTHS))
        shape[-1] = 0
        return np.zeros(shape if len(shape) > 1 else [shape[0], 0], array.dtype)
    if how == 1:
        return array.T.copy()
    if how == 2:
        return array[: chance.integers(len(array) + 1)].copy() if array.ndim else array
    return np.zeros((min(int(chance.choice(LENGTHS)), 1 << 16), *array.shape[1:]), array.dtype)


def _with_false_header(content: bytes, chance: np.random.Generator) -> bytes:
    """Let the header of one array in an archive declare another shape or type."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
        names = [name for name in old.namelist() if name.endswith(".npy")]
        chosen = names[chance.integers(len(names))]
        for name in old.namelist():
            data = old.read(name)
            if name == chosen:
                shape = tuple(int(chance.choice(LENGTHS)) for _ in range(int(chance.integers(1, 4))))
                dtype = str(chance.choice(["<f8", "<i8", "|O", "<U9", "<c16", "|V0"]))
                data = npy_header(shape, dtype) + bytes(int(chance.integers(200)))
            new.writestr(name, data)
    return stream.getvalue()


def _check_possible(found: Finished, what: str) -> None:
    """Compare every number with the range of its metric."""
    if not found.out.startswith("{"):
        return
    table = json.loads(found.out)
    for name, entry in _entries(table):
        values = [entry.get(key) for key in ("value", "low", "high")]
        facts = FACTS[name]
        for value in values:
            if value is None:
                continue
            if not math.isfinite(value) or not facts.low - 1e-9 <= value <= facts.high + 1e-9:
                raise Wrong(f"{what}: {name} is {value}")
    for key in ("n_samples", "n_classes"):
        if isinstance(table.get(key), int) and not 0 <= table[key] < 10**15:
            raise Wrong(f"{what}: {key} is {table[key]}")


def _entries(table: Any) -> list[tuple[str, dict[str, Any]]]:
    """Find scores anywhere in JSON: entries named like a metric that have a value."""
    found = []
    for name, entry in table.items() if isinstance(table, dict) else enumerate(table):
        if isinstance(entry, dict) and name in FACTS and isinstance(entry.get("value"), int | float):
            found.append((str(name), entry))
        elif isinstance(entry, dict | list):
            found += _entries(entry)
    return found


def try_merge(prepared: list[Prepared], chance: np.random.Generator, folder: Path) -> None:
    """States of other rows add up; rows that are in two states, however they were summed, are refused."""
    days = prepared[chance.integers(len(prepared))].days
    chosen = [NAMES[n] for n in chance.permutation(3)[: chance.integers(1, 4)]]
    paths = [
        _summed(days[name], folder / f"{number}{_ending(chance)}", chance)
        for number, name in enumerate(chosen)
    ]
    twice = chance.random() < 0.5
    if twice:
        again = folder / f"again{_ending(chance)}"
        if chance.random() < 0.5 and len(paths) > 1:  # what was merged before, with one of its parts
            if not check_finished(command(["merge", *paths, "-o", again], folder), "merge"):
                raise Wrong("states of other rows were refused")
            paths = [again, paths[chance.integers(len(paths))]]
        else:
            paths.append(_summed(days[chosen[chance.integers(len(chosen))]], again, chance))
        paths = [paths[n] for n in chance.permutation(len(paths))]
    total = folder / f"total{_ending(chance)}"
    fine = check_finished(command(["merge", *paths, "-o", total], folder), "merge")
    if fine and twice:
        raise Wrong(f"rows that are in two of {len(paths)} states count twice")
    if not fine and not twice:
        raise Wrong("states of other rows were refused")
    if fine:
        found = command(["score", total, "--json", "--resamples", "5"], folder)
        _check_sum(json.loads(found.out), [days[name] for name in chosen])


def _ending(chance: np.random.Generator) -> str:
    return str(chance.choice([".state", ".json", ".npz"]))


def _summed(rows: Predictions, path: Path, chance: np.random.Generator) -> Path:
    """Write the state of some rows, summed in one of many ways that all give the same numbers."""
    step = int(chance.integers(1, len(rows) + 1))
    by = ["site"] if chance.random() < 0.5 else None
    with use_backend("fallback" if chance.random() < 0.5 else "compiled"):
        parts = (rows.take(slice(start, start + step)) for start in range(0, len(rows), step))
        write_audit_state(AuditState.of(parts, by=by), path)
    return path


def _check_sum(table: dict[str, Any], days: list[Predictions]) -> None:
    kind = days[0].kind
    joined: dict[str, Any] = {"labels": np.concatenate([day.labels for day in days])}
    if kind == "top1":
        joined |= {
            name: np.concatenate([getattr(day, name) for day in days]) for name in ("predicted", "confidence")
        }
        joined["n_classes"] = 3
    else:
        joined[kind] = np.concatenate([day.scores for day in days if day.scores is not None])
    expected = score(Predictions(**joined), n_resamples=1)
    for name, entry in _entries(table):
        if (
            name in ("accuracy", "nll", "brier", "ece", "mce")
            and abs(entry["value"] - expected[name].value) > 1e-9
        ):
            raise Wrong(f"{name} of merged states is {entry['value']}, not {expected[name].value}")
