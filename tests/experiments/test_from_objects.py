"""Comparisons from Python take functions and classes, with the guarantees of a spec."""

import importlib.util
import subprocess
import sys
from functools import partial

import pytest

from equipoise.core.errors import SpecError
from equipoise.experiments import compare_methods
from equipoise.losses import FocalLoss
from helpers.own_code import CODE, write_code

QUICK = {"name": "quick", "epochs": 1}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    home = write_code(tmp_path / "home")
    monkeypatch.syspath_prepend(str(home))
    spec = importlib.util.spec_from_file_location("mine", home / "mine.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mine", module)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("sizes", None)


def compared(mine, folder, quick, methods, **changes):
    settings = {"network": partial(mine.Net, width=5), "data": mine.points, "recipe": QUICK, **changes}
    return compare_methods(methods, folder=folder, **quick, **settings)


@pytest.mark.slow
def test_objects_run_in_workers_and_are_not_run_twice(mine, tmp_path, quick):
    methods = {
        "ce": "ce",
        "smooth": partial(mine.Smoothed, smoothing=0.2),
        "focal": partial(FocalLoss, gamma=2.0),
    }
    first = compared(mine, tmp_path / "runs", quick, methods, workers=2, seeds=[0, 1])
    assert first.summary.failed == {}
    assert [row.method for row in first.tables[0].rows][:3] == ["ce", "smooth", "focal"]
    stamps = {folder.name: (folder.path / "last.pt").stat().st_mtime_ns for folder in first.summary.done}
    renamed = {"baseline": "ce", "mine": partial(mine.Smoothed, smoothing=0.2)}
    again = compared(mine, tmp_path / "runs", quick, renamed, workers=1, seeds=[0, 1])
    assert [row.method for row in again.tables[0].rows][:2] == ["baseline", "mine"]
    assert {
        folder.name: (folder.path / "last.pt").stat().st_mtime_ns for folder in again.summary.done
    }.items() <= stamps.items()


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (
            lambda: FocalLoss(gamma=1.0),
            r"methods\['x'\]: '.*<lambda>' cannot be found again by name\. .*\.py file",
        ),
        (FocalLoss(), r"a function or class, got FocalLoss\. .*functools\.partial"),
        (partial(FocalLoss, 2.0), "positional arguments"),
        (partial(FocalLoss, gamma=-3.0), r"compare_methods\.method: .*gamma"),
        ("focl", "did you mean 'focal'"),
    ],
)
def test_what_cannot_be_sent_to_a_process_is_refused_with_a_remedy(mine, tmp_path, quick, method, sentence):
    with pytest.raises(SpecError, match=sentence):
        compared(mine, tmp_path / "runs", quick, {"x": method})
    assert not (tmp_path / "runs").exists()


SCRIPT = """
def main():
    from equipoise.experiments import Execution, ScoringOptions, compare_methods
    result = compare_methods({"mine": Smoothed, "ce": "ce"}, network=Net, data=points, folder="runs", workers=2,
        recipe={"name": "quick", "epochs": 1}, scoring=ScoringOptions(n_resamples=20),
        execution=Execution(quiet=True))
    print(sorted(row.method for row in result.tables[0].rows[:2]), result.summary.failed)

"""


@pytest.mark.slow
@pytest.mark.parametrize("guarded", [True, False])
def test_a_script_that_defines_its_own_parts(tmp_path, guarded):
    write_code(tmp_path)
    call = "if __name__ == '__main__':\n    main()\n" if guarded else "main()\n"
    (tmp_path / "script.py").write_text(CODE + SCRIPT + call)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if guarded:
        assert done.stdout == "['ce', 'mine'] {}\n", done.stderr
    else:
        assert "begins runs when it is imported" in done.stderr
