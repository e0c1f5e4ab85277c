"""Forged states: numbers that cannot be the sums of any rows are reported, and those of all real rows are accepted."""

import copy
import json

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.cli import main
from equipoise.core.errors import DataError
from equipoise.core.records import Record, digest_of
from equipoise.evaluate import AuditState, audit, read_audit_state, write_audit_state
from equipoise.evaluate.audit_state import merge_states
from equipoise.kernels.dispatch import use_backend

ENDS = (-1, 0, 2**62, 1e300)


def rows(n=400, seed=0, k=4, kind="logits", dtype=np.float64, scale=2.0, **extra):
    generator = np.random.default_rng(seed)
    logits = (scale * generator.normal(size=(n, k))).astype(dtype)
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    scores = logits
    if kind == "probs":
        scores = np.exp(logits - logits.max(1, keepdims=True))
        scores /= scores.sum(1, keepdims=True)
    return Predictions(**{kind: scores, "labels": labels} | extra)


def one_column(n=300, seed=3, **extra):
    generator = np.random.default_rng(seed)
    probs = np.round(generator.random(n), 2)
    return Predictions(probs=probs, labels=(generator.random(n) < probs).astype(int), **extra)


def top1(n=300, seed=1, **extra):
    generator = np.random.default_rng(seed)
    confidence = generator.choice([0.0, 0.5, 0.7, 1.0], n)
    predicted = generator.integers(0, 4, n)
    labels = np.where(generator.random(n) < confidence, predicted, (predicted + 1) % 4)
    return Predictions(labels=labels, predicted=predicted, confidence=confidence, **extra)


WEIGHTS = np.where(np.arange(300) % 3 == 0, 0.0, np.linspace(0, 1e6, 300))
SITES = {"site": np.array(["north", "south", "east"])[np.arange(400) % 3]}
REAL = {
    "logits": rows(groups=SITES),
    "single precision": rows(dtype=np.float32),
    "probabilities": rows(kind="probs", class_names=["a", "b", "c", "d"]),
    "probabilities in single precision": rows(kind="probs", dtype=np.float32, k=12),
    "saturated": rows(scale=1e4),
    "saturated in single precision": rows(scale=1e4, dtype=np.float32),
    "flat": rows(scale=1e-9),
    "one column": one_column(),
    "weights": one_column(weights=WEIGHTS),
    "impossible labels": Predictions(probs=np.eye(3)[np.arange(30) % 3], labels=(np.arange(30) // 3) % 3),
    "sums a little off": Predictions(probs=np.full((40, 3), 0.3334), labels=np.arange(40) % 3),
    "top-1": top1(n_classes=4),
    "top-1, classes unknown": top1(),
    "one row": rows(1),
    "many classes": rows(50, k=500),
    "calib": rows(split="calib"),
}


@pytest.mark.parametrize("way", ["compiled", "fallback"])
@pytest.mark.parametrize("settings", [{}, {"n_bins": 1}, {"n_bins": 100, "closed": "left"}])
@pytest.mark.parametrize("name", REAL)
def test_sums_of_real_rows_are_accepted(tmp_path, name, settings, way):
    with use_backend(way):
        state = AuditState.of(REAL[name].blocks(150), **settings)
    write_audit_state(state, tmp_path / "a.state")
    assert read_audit_state(tmp_path / "a.state").n_samples == len(REAL[name])


def test_sums_of_merged_states_are_accepted(tmp_path):
    total = merge_states({str(seed): AuditState.of(rows(5000, seed, k=3)) for seed in range(4)})
    write_audit_state(total, tmp_path / "a.state")
    assert read_audit_state(tmp_path / "a.state").n_samples == 20_000


@pytest.fixture
def saved(tmp_path):
    """A function that writes a state with one change, its digest computed again, and reads it."""
    path = tmp_path / "a.json"
    write_audit_state(AuditState.of(rows(class_names=["a", "b", "c", "d"], groups=SITES), n_bins=5), path)
    content = json.loads(path.read_text())

    def forge(change):
        forged = copy.deepcopy(content)
        change(forged)
        arrays = {
            name: np.array(one["values"], one["type"]).reshape(one["shape"])
            for name, one in forged["arrays"].items()
        }
        forged["digest"] = digest_of(forged["format"], forged["version"], Record(forged["plain"], arrays))
        path.write_text(json.dumps(forged))
        return path

    return content, forge


def numbers_of(content):
    """Yield a function per number of a state that replaces it: some of every array, all plain ones."""
    for name, array in content["arrays"].items():
        n = len(array["values"])
        nonzero = [place for place in range(n) if array["values"][place]][:3]
        for place in {0, n - 1, *nonzero} if n else ():
            for value in ENDS:
                if value != array["values"][place] and (array["type"] == "<f8" or isinstance(value, int)):

                    def change(forged, name=name, place=place, value=value):
                        values = forged["arrays"][name]["values"]
                        values[place] = float(value) if isinstance(values[place], float) else value

                    yield f"{name}[{place}] = {value}", change
    for table in ("diagnostics", "identity"):
        for key in content["plain"][table]:
            for value in (None, -1, 1e300, "text", [], [[[]]], True, 2**64):

                def change(forged, table=table, key=key, value=value):
                    forged["plain"][table][key] = value

                yield f"{table}.{key} = {value!r}", change
    for key in content["plain"]:
        for value in (None, -1, "text", [], [[]], ["a"] * 3, True):

            def change(forged, key=key, value=value):
                forged["plain"][key] = value

            yield f"{key} = {value!r}", change


def test_every_changed_number_is_reported_or_harmless(saved):
    """A changed number is an error of one line, or the audit is that of a possible set of rows."""
    content, forge = saved
    accepted = []
    for what, change in numbers_of(content):
        path = forge(change)
        try:
            state = read_audit_state(path)
        except DataError:
            continue
        accepted.append(what)
        found = audit(state, n_resamples=5)
        assert all(0 <= score.value <= 1 for key, score in found.card.scores.items() if "ece" in key), what
        assert found.card.n_samples == 400, what
    # Hashes may be any number, and names, the split and hints at mistakes are not sums.
    free = (
        "identity.",
        "diagnostics.inner_",
        "diagnostics.split",
        "diagnostics.weighted",
        "diagnostics.totals",
    )
    free += ("diagnostics.values = None", "class_names = None", "optional = True")
    assert [what for what in accepted if not what.startswith(free)] == []


@pytest.mark.parametrize(
    ("name", "shape", "kind"),
    [
        ("calibration.classwise", [2**40, 0, 3], "<f8"),
        ("calibration.cells", [2**40, 0, 7], "<f8"),
        ("calibration.ranks", [0], "<f8"),
        ("calibration.sketch", [2**30, 0], "<f8"),
        ("classes.bins", [2**40, 0, 3], "<f8"),
        ("identity.sources", [2**40, 0], "<i8"),
        ("diagnostics.labels", [2**40, 0], "<i8"),
    ],
)
def test_shapes_take_no_memory_that_the_file_does_not_fill(saved, name, shape, kind):
    _, forge = saved
    path = forge(lambda c: c["arrays"].__setitem__(name, {"type": kind, "shape": shape, "values": []}))
    with pytest.raises(DataError, match=r"^a\.json: "):
        read_audit_state(path)


def test_a_forged_state_is_bad_input_and_no_failed_gate(saved, capsys):
    _, forge = saved

    def change(forged):
        forged["arrays"]["calibration.cells"]["values"][1] = 1e9

    assert main(["audit", str(forge(change)), "--max", "ece=5%"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "a.json: is not a complete state" in error
