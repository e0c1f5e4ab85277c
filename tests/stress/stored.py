"""What the package wrote itself, changed by others: artifacts, checkpoints, run folders; and specs from anywhere."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.calibrators import TemperatureScaling, artifact, from_artifact, load
from equipoise.catalogue import CATALOGUE
from equipoise.core import Predictions
from equipoise.core.errors import EquipoiseError
from equipoise.core.records import Record, read_record, write_record
from equipoise.decisions import (
    AcceptRule,
    CostRule,
    DailyMonitor,
    PredictionSets,
    certify_threshold,
    check_decision,
    load_decision,
)
from equipoise.experiments import RunFolder, Spec, read_comparison, read_spec, run
from equipoise.training import fit
from helpers import toys
from helpers.calibration_data import sample
from helpers.hostile_files import WAYS, damaged
from helpers.tiny_runs import QUICK, TABLE, results_of
from stress.judge import Wrong

CALIBRATORS = CATALOGUE["calibrators"]

LOGITS, LABELS = sample(60, 3)
#: Values that a field of JSON or TOML may be replaced by.
FOREIGN: tuple[Any, ...] = (
    None, True, 0, -1, 3, 10**6, 10**30, 1e300, -0.5, "", "x", "../../x", "\ud800", "NaN", [], [1], [[]], {}, {"a": 1},
)  # fmt: skip


def prepare_artifacts(folder: Path) -> list[tuple[str, bytes, dict[str, Any], np.ndarray]]:
    found = []
    for key in CALIBRATORS:
        calibrator = CALIBRATORS[key].make().fit(LOGITS, LABELS)
        for ending in ("json", "safetensors"):
            path = folder / f"map.{ending}"
            calibrator.save(path)
            load(path)
            found.append((ending, path.read_bytes(), calibrator.to_artifact(), calibrator(LOGITS)))
    return found


def try_artifact(prepared: Any, chance: np.random.Generator, folder: Path) -> None:
    """A damaged map is refused or the same; a forged one, with a hash that fits, is refused or gives numbers."""
    ending, content, table, wanted = prepared[chance.integers(len(prepared))]
    if chance.random() < 0.5:
        path = folder / f"map.{ending}"
        path.write_bytes(damaged(content, chance, str(chance.choice(WAYS))))
        if not np.array_equal(load(path)(LOGITS), wanted):
            raise Wrong("a damaged map was read, and gives other numbers")
        return
    forged = copy.deepcopy(table)
    for _ in range(int(chance.integers(1, 4))):
        replace_somewhere(forged, chance)
    if chance.random() < 0.8:
        try:
            forged["checksum"] = artifact._checksum(forged)
        except Exception:  # noqa: BLE001 - what cannot be hashed keeps the old hash
            forged["checksum"] = table["checksum"]
    if chance.random() < 0.5:
        path = folder / "map.json"
        path.write_text(json.dumps(forged))
        after = load(path)(LOGITS)
    else:
        after = from_artifact(forged)(LOGITS)
    if np.shape(after) != np.shape(wanted) or not np.isfinite(after).all():
        raise Wrong("a forged map was read, and does not give finite numbers of the right shape")


def _watched_rows(seed: int) -> Predictions:
    chance = np.random.default_rng(seed)
    claimed = chance.uniform(0.6, 1, 40)
    sites = {"site": np.array(["north", "south"] * 20)}
    return Predictions(confidence=claimed, correct=chance.random(40) < claimed, groups=sites)


def prepare_monitors(folder: Path) -> Record:
    monitor = DailyMonitor(by=("site",), min_accuracy=0.7)
    for day in range(1, 4):
        monitor.watch(_watched_rows(day), day=f"2026-03-0{day}")
    monitor.save(folder / "monitor.json")
    return read_record(folder / "monitor.json", "equipoise.monitor", 1)


def try_monitor(prepared: Record, chance: np.random.Generator, folder: Path) -> None:
    """A forged monitor, with a digest that fits, is refused or continues with finite numbers."""
    forged, path = json.loads(json.dumps(prepared.plain)), folder / "forged.json"
    for _ in range(int(chance.integers(1, 4))):
        replace_somewhere(forged, chance)
    try:
        write_record(path, "equipoise.monitor", 1, Record(forged, prepared.arrays))
    except Exception:  # noqa: BLE001 - what cannot be written cannot be read
        return
    monitor = DailyMonitor.load(path)
    found = monitor.watch(_watched_rows(9), day="2026-03-09")
    monitor.save(path)
    if not np.isfinite([found.mean_evidence, *found.evidence.values()]).all() or not found.describe():
        raise Wrong("a forged monitor was read, and gives evidence that is not finite")


def _judged_rows(seed: int) -> Predictions:
    chance = np.random.default_rng(seed)
    logits = 2 * chance.normal(size=(300, 3))
    labels = (logits + chance.gumbel(size=logits.shape)).argmax(axis=1)
    return Predictions(logits=logits, labels=labels, groups={"site": np.array(["north", "south"] * 150)})


def prepare_decisions(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    rows, calibrator = _judged_rows(0), TemperatureScaling().fit(_judged_rows(1))
    decisions = [
        certify_threshold(rows, max_error=0.3, calibrator=calibrator),
        certify_threshold(rows, max_error=0.4, score="margin", by="site"),
        PredictionSets("raps", coverage=0.8).fit(rows),
        PredictionSets("lac", coverage=0.8, conditional="group", by="site").fit(rows),
        CostRule(wrong=10, abstain=1),
    ]
    found = []
    for decision in decisions:
        decision.save(folder / "decision.json")
        content = json.loads((folder / "decision.json").read_bytes())
        check_decision(decision, _judged_rows(2))
        found.append((content["format"], read_record(folder / "decision.json", content["format"], 1).plain))
    return found


def try_decision(prepared: Any, chance: np.random.Generator, folder: Path) -> None:
    """A forged decision, with a digest that fits, is refused or decides about every row."""
    form, plain = prepared[chance.integers(len(prepared))]
    forged, path = json.loads(json.dumps(plain)), folder / "forged.json"
    for _ in range(int(chance.integers(1, 4))):
        replace_somewhere(forged, chance)
    try:
        write_record(path, form, 1, Record(forged, {}))
    except Exception:  # noqa: BLE001 - what cannot be written cannot be read
        return
    decision, rows = load_decision(path), _judged_rows(3)
    checked = check_decision(decision, rows)
    if not checked.text or type(checked.kept) is not bool:
        raise Wrong("a forged decision was read, and its check says nothing")
    if isinstance(decision, AcceptRule):
        accepted = decision(rows)
        if accepted.shape != (len(rows),) or accepted.dtype != bool:
            raise Wrong("a forged rule was read, and does not decide about every row")


def replace_somewhere(table: Any, chance: np.random.Generator) -> None:
    """Replace, remove or add one entry at a random depth."""
    while True:
        keys = list(table) if isinstance(table, dict) else list(range(len(table)))
        if not keys:
            return
        key = keys[chance.integers(len(keys))]
        inner = table[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.75:
            table = inner
            continue
        how = chance.integers(5)
        if how == 0:
            del table[key]
        elif how == 1 and isinstance(table, dict):
            table["extra"] = copy.deepcopy(FOREIGN[chance.integers(len(FOREIGN))])
        else:
            table[key] = copy.deepcopy(FOREIGN[chance.integers(len(FOREIGN))])
        return


def _train(folder: Path, epochs: int) -> dict[str, Any]:
    objective = toys.supervised(toys.losses.AdaFocalLoss(n_bins=5))(3)
    fit(objective, toys.TRAIN, epochs=epochs, tune=toys.TUNE, folder=folder, hardware=toys.CPU, quiet=True)
    return objective.network().state_dict()


def prepare_checkpoints(folder: Path) -> tuple[Path, dict[str, Any]]:
    half = folder / "half"
    _train(half, 2)
    whole = folder / "whole"
    shutil.copytree(half, whole)
    return half, _train(whole, 3)


def try_checkpoint(prepared: Any, chance: np.random.Generator, folder: Path) -> None:
    """Training goes on from a damaged folder with the same result, or says that it cannot."""
    half, wanted = prepared
    place = folder / "run"
    shutil.copytree(half, place)
    file = place / str(chance.choice(["last.pt", "last.pt", "last.pt", "best.pt", "history.csv"]))
    content = file.read_bytes()
    how = str(chance.choice([*WAYS, "flip", "flip", "foreign"]))
    file.write_bytes(foreign(chance) if how == "foreign" else damaged(content, chance, how))
    found = _train(place, 3)
    if any(not np.array_equal(found[name], wanted[name]) for name in wanted):
        raise Wrong(f"another result from {file.name} ({how})")


def foreign(chance: np.random.Generator) -> bytes:
    """Content of another program, or of nobody."""
    some = (b"", b"{}", b"[]", b"null", b"PK\x03\x04", b"\x80\x04K\x01.", b"[" * 100_000, b'{"a":' * 50_000)
    more = (b"a,b\n1,2\n", b"x" * 200_000, b'"' + b"y" * 200_000, b"\xff\xfe\x00", chance.bytes(300))
    return (*some, *more)[chance.integers(len(some) + len(more))]


def prepare_runs(folder: Path) -> tuple[Path, Spec, dict[str, bytes]]:
    spec = Spec.from_table(TABLE)
    done = run(spec, folder / "runs", **QUICK)
    return done.path, spec, results_of(done)


def try_run_folder(prepared: Any, chance: np.random.Generator, folder: Path) -> None:
    """A run with a damaged file is looked at without an accident, and made again with the same results."""
    good, spec, wanted = prepared
    copied = RunFolder(folder / good.name)
    shutil.copytree(good, copied.path)
    files = sorted(file for file in copied.path.rglob("*") if file.is_file() and file.name != ".lock")
    file = files[chance.integers(len(files))]
    how = str(chance.choice([*WAYS, "foreign", "foreign", "folder"]))
    content = file.read_bytes()
    if how == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(foreign(chance) if how == "foreign" else damaged(content, chance, how))
    copied.status()
    if chance.random() < 0.5:
        try:
            copied.scores()
            copied.history()
        except EquipoiseError:
            pass
    again = run(spec, folder, **QUICK)
    different = [name for name, value in results_of(again).items() if wanted.get(name) != value]
    if different or set(results_of(again)) != set(wanted):
        raise Wrong(f"{file.relative_to(copied.path)} ({how}): other results in {different}")


SPEC = """
name = "fuzz"
data = { name = "digits", options = { noise = 0.3, tune = 0.1 } }
model = { name = "mlp", options = { hidden = [16] } }
method = ["ce", { name = "focal", options = { gamma = 2.0 } }]
seed = [0, 1]
calibrators = ["temperature", "vector"]
baseline = "ce"

[recipe]
name = "quick"
epochs = 2
"""
TOKENS = (
    '"', "'", "[", "]", "{", "}", "=", ",", "\n", "[[recipe]]", "nan", "inf", "-1", "0", "1e400", "9" * 400,
    "true", '"../../x"', '"/etc/x"', '"\\u0000"', "[" * 3000, "{a=" * 2000, "a." * 3000 + "b = 1", "1979-05-27", "#",
    '"ce"', "[]", "{}", '"' + "x" * 100_000 + '"', "\x00", "\ufeff", "seed", "recipe", "lambda",
)  # fmt: skip


def prepare_specs(folder: Path) -> None:
    path = folder / "a.toml"
    path.write_text(SPEC)
    read_comparison(path)


def try_spec(_: None, chance: np.random.Generator, folder: Path) -> None:
    """A spec of any content is read or refused; what is read has a name that stays in its folder."""
    path = folder / "a.toml"
    words = SPEC.split(" ")
    for _ in range(int(chance.integers(1, 5))):
        place = int(chance.integers(len(words)))
        words[place : place + int(chance.integers(3))] = [TOKENS[chance.integers(len(TOKENS))]]
    content = " ".join(words).encode("utf-8", "surrogatepass")
    path.write_bytes(damaged(content, chance, str(chance.choice(WAYS))) if chance.random() < 0.3 else content)
    if chance.random() < 0.3:
        spec = read_spec(path)
        if Spec.from_table(spec.to_table()).identity != spec.identity:
            raise Wrong("a spec does not come back the same")
        return
    found = read_comparison(path)
    if Path(found.name).name != found.name or found.name in ("", ".", "..") or "\x00" in found.name:
        raise Wrong(f"a comparison is named {found.name[:80]!r}")
