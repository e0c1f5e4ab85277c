"""Machine code is never older than the files it was made from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise.kernels
from equipoise.kernels import cache
from equipoise.kernels.dispatch import why_fallback

pytestmark = pytest.mark.skipif(why_fallback() is not None, reason="nothing is compiled here")

HELPER = "from equipoise.kernels.cache import jit\n\n\n@jit()\ndef helper(x):\n    return {} * x\n"
PROBE = """
from equipoise.kernels.cache import jit
from equipoise.kernels.probe_helper import helper


@jit()
def probe(x):
    return helper(x) + 1
"""
RUN = "from equipoise.kernels.probe import probe; print(probe(10), sum(probe.stats.cache_hits.values()))"


@pytest.fixture
def package(tmp_path):
    """A copy of the package with two functions more, one of which the other calls."""
    copy = tmp_path / "here" / "equipoise" / "kernels"
    shutil.copytree(
        Path(equipoise.kernels.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__")
    )
    (copy.parent / "__init__.py").touch()
    (copy / "probe_helper.py").write_text(HELPER.format(2))
    (copy / "probe.py").write_text(PROBE)
    return copy


def run(package, place):
    environment = {**os.environ, "PYTHONPATH": str(package.parents[1]), "NUMBA_CACHE_DIR": str(place)}
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True
    )
    return [int(word) for word in done.stdout.split()]


def test_a_changed_helper_gives_the_changed_result_with_a_warm_cache(package, tmp_path):
    assert run(package, tmp_path / "cache") == [21, 0]
    assert run(package, tmp_path / "cache") == [21, 1]
    (package / "probe_helper.py").write_text(HELPER.format(3))
    assert run(package, tmp_path / "cache") == [31, 0]


def test_where_nothing_can_be_written_everything_still_runs(package, tmp_path):
    (tmp_path / "in_the_way").touch()
    assert run(package, tmp_path / "in_the_way") == [21, 0]


@pytest.fixture
def _found_anew():
    cache._cache_folder.cache_clear()
    yield
    cache._cache_folder.cache_clear()


@pytest.mark.usefixtures("_found_anew")
def test_a_user_without_a_home_keeps_nothing_there(monkeypatch, tmp_path):
    def without():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(Path, "home", without)
    monkeypatch.setattr(Path, "expanduser", lambda path: without())
    monkeypatch.setattr(cache, "_PACKAGE", tmp_path)
    assert cache.cache_folder().parent == tmp_path / "__pycache__"
    cache._cache_folder.cache_clear()
    shutil.rmtree(tmp_path / "__pycache__")
    (tmp_path / "__pycache__").touch()
    assert cache.cache_folder() is None


@pytest.mark.usefixtures("_found_anew")
def test_where_files_cannot_be_locked_nothing_is_kept(monkeypatch, tmp_path):
    fcntl = pytest.importorskip("fcntl")

    def refuse(file, operation):
        raise OSError(38, "Function not implemented")

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert cache.cache_folder() is None
    with cache.single_process():
        pass


def test_two_pythons_that_share_a_place_have_folders_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    here = cache.cache_folder()
    monkeypatch.setattr(sys.implementation, "cache_tag", "cpython-399")
    cache._cache_folder.cache_clear()
    elsewhere = cache.cache_folder()
    cache._cache_folder.cache_clear()
    assert here.parent == elsewhere.parent == tmp_path
    assert here != elsewhere
