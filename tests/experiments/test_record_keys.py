"""Records of runs that lack a key or hold another type: one line that names file and key, and the others go on."""

import json
import shutil

import pytest

from equipoise.cli import main
from equipoise.core.checksums import content_checksum
from equipoise.core.errors import DataError
from equipoise.experiments import RunFolder, Spec, find_runs, report_of_runs, run
from equipoise.experiments.results.groups import group_runs
from equipoise.experiments.results.tables import tables_of_groups
from helpers.daily import daily
from helpers.tiny_runs import FAILING, QUICK, TABLE

#: Stage, file in the run's folder, and the keys that lead to a value that is read.
KEYS = [
    ("predicted", "manifest.json", "stages.predicted.splits"),
    ("scored", "manifest.json", "stages.scored.calibrators"),
    ("scored", "manifest.json", "stages.scored.settings"),
    ("started", "manifest.json", "files"),
    ("started", "manifest.json", "stages"),
    ("trained", "manifest.json", "run"),
    ("scored", "scores/identity.json", "cards"),
    ("scored", "scores/identity.json", "cards.test"),
    ("scored", "scores/identity.json", "cards.test.scores"),
    ("scored", "scores/identity.json", "cards.test.scores.ece.value"),
    ("scored", "scores/identity.json", "words"),
    ("scored", "scores/temperature.json", "temperature"),
    ("scored", "scores/temperature.json", "classes"),
    ("started", "environment.json", "data"),
    ("started", "environment.json", "data.rows"),
    ("started", "environment.json", "packages"),
    ("started", "environment.json", "threads"),
]
MISSING = object()
#: What stands there instead.
CHANGES = {"missing": MISSING, "true": True, "list": [{}], "table": {"a": {"b": []}}}


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Two finished runs and a failed one."""
    folder = tmp_path_factory.mktemp("originals")
    for seed in (0, 1):
        run(Spec.from_table({**TABLE, "seed": seed}), folder, **QUICK)
    with pytest.raises(ValueError, match="tune"):
        run(Spec.from_table(FAILING), folder, **QUICK)
    return folder


@pytest.fixture
def runs(originals, tmp_path):
    shutil.copytree(originals, tmp_path / "runs")
    return tmp_path / "runs"


def change(folder, stage, name, keys, value):
    """Write another value and vouch for it, as a program with a fault would."""
    file = folder.path / name
    content = json.loads(file.read_text())
    *outer, last = keys.split(".")
    table = content
    for key in outer:
        table = table[key]
    if value is MISSING:
        del table[last]
    else:
        table[last] = value
    if content.pop("checksum", None) is not None:
        content["checksum"] = content_checksum(content)
    file.write_text(json.dumps(content))
    if name != "manifest.json":
        folder.write_record(stage, **folder.record(stage))


def finished(runs):
    return [one for one in find_runs(runs) if one.status() == "finished"]


def read_everything(runs):
    """Read what tables and reports read."""
    found = finished(runs)
    tables_of_groups(group_runs(found))
    report_of_runs(found)
    return found


@pytest.mark.parametrize("value", daily(CHANGES, keep=["missing", "true"]))
@pytest.mark.parametrize(("stage", "name", "keys"), KEYS)
def test_a_key_that_is_missing_or_of_another_type_is_named(runs, stage, name, keys, value, capsys):
    folder = finished(runs)[0]
    change(folder, stage, name, keys, CHANGES[value])
    assert main(["runs", str(runs), "--why"]) == 0
    listed = capsys.readouterr().out
    if name == "manifest.json":
        assert folder.status() == "broken"
        assert f"{name}: damaged: `{keys}" in listed
        assert len(read_everything(runs)) == 1
    else:
        with pytest.raises(DataError, match=rf"{name}: damaged: `{keys}") as caught:
            read_everything(runs)
        assert "\n" not in str(caught.value)
        assert main(["report", str(runs), "-o", str(runs / "report.html")]) == 2


@pytest.mark.parametrize("keys", ["stage", "kind", "message"])
@pytest.mark.parametrize("value", daily(CHANGES, keep=["missing", "true"]))
def test_a_failure_without_a_reason_is_listed_as_damaged(runs, keys, value, capsys):
    [failed] = (one for one in find_runs(runs) if one.status() == "failed")
    change(failed, "error", "manifest.json", f"error.{keys}", CHANGES[value])
    assert main(["runs", str(runs), "--why"]) == 0
    assert f"manifest.json: damaged: `error.{keys}`" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["epoch,loss\n1,low\n", "loss\n0.5\n"])
def test_a_history_without_numbers_names_its_column(runs, content, tmp_path):
    folder = RunFolder(finished(runs)[0].path)
    (folder.path / "history.csv").write_text(content)
    folder.write_record("trained", **folder.record("trained"))
    with pytest.raises(
        DataError, match=r"history\.csv: damaged: a number was expected in the column '(loss|epoch)'"
    ):
        folder.history()
    assert main(["runs", str(runs), "--why"]) == 0
