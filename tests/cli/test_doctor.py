"""`equipoise doctor`: what is there, what is not, and how to get it."""

import json

import pytest

from equipoise.cli import doctor, main


def test_a_sound_installation(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "Everything that is needed works" in out
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
    assert ("kept in" in cache) == (place == "folder")


def test_extras_are_those_of_the_package():
    from importlib.metadata import metadata

    offered = set(metadata("equipoise").get_all("Provides-Extra"))
    assert set(doctor._EXTRAS) <= offered
