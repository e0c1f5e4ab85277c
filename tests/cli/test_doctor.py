"""`equipoise doctor`: what is there, what is not, and how to get it."""

import json
import pkgutil
import tomllib
from pathlib import Path

import pytest

from equipoise.cli import doctor, main


def test_a_sound_installation(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "The core works" in out
    assert "numba" in out


def test_a_missing_extra_is_told_with_its_remedy(capsys, monkeypatch):
    version = doctor.version

    def without_pyarrow(name):
        if name == "pyarrow":
            raise doctor.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(doctor, "version", without_pyarrow)
    assert main(["doctor"]) == 0
    assert "missing: pip install 'equipoise[parquet]'" in capsys.readouterr().out


def test_a_compiled_pass_that_fails_is_a_problem(capsys, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("no compiler here")

    monkeypatch.setattr("equipoise.metrics.CalibrationState.update", broken)
    assert main(["doctor", "--json"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert "no compiler here" in content["problems"][0]


@pytest.mark.parametrize("place", ["folder", "file"])
def test_the_cache_is_looked_at(place, tmp_path, capsys, monkeypatch):
    path = tmp_path / place
    if place == "file":
        path.write_text("in the way")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(path))
    assert main(["doctor", "--json"]) == 0
    cache = json.loads(capsys.readouterr().out)["numba"]["cache"]
    assert ("cached in" in cache) == (place == "folder")


def test_extras_are_all_that_add_something_for_users():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    offered = project["optional-dependencies"]
    groups = {"all", "suite", "test", "integrations", "dev", "release", "docs", "bench"}
    assert set(doctor._EXTRAS) == set(offered) - groups
    for extra, (_, packages) in doctor._EXTRAS.items():
        own = [name.partition(">")[0] for name in offered[extra] if not name.startswith("equipoise[")]
        assert list(packages) == own


def test_every_adapter_is_listed(capsys):
    import equipoise.integrations

    own = {
        "auto",
        "auto_estimators",
        "bounded_network",
        "calibrated",
        "raw_inputs",
        "run_log",
        "run_model",
        "saved_model",
    }  # no package of others
    adapters = {module.name for module in pkgutil.iter_modules(equipoise.integrations.__path__)} - own
    assert main(["doctor", "--json"]) == 0
    assert adapters <= set(json.loads(capsys.readouterr().out)["extras"])
