"""Compiled or plain: nobody waits for a compiler over little work, and the numbers are the same."""

import json
import os
import subprocess
import sys
import threading

import pytest

from equipoise.kernels import cache, dispatch

SCORES = """
import contextlib, json, sys
import numpy as np
from equipoise.kernels.dispatch import use_backend
from equipoise import Predictions, score
from equipoise.calibrators import TemperatureScaling
from equipoise.evaluate import score_by_class
from equipoise.metrics import thresholded_adaptive_calibration_error

rng = np.random.default_rng(0)
logits = 3 * rng.normal(size=(6000, 50))
labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(1)
ways = contextlib.ExitStack()
if sys.argv[1:]:
    ways.enter_context(use_backend(sys.argv[1]))
rows = Predictions(logits=logits, labels=labels)
found = score(rows)
print(json.dumps([
    *(part.value for part in found.scores.values()),
    TemperatureScaling().fit(logits, labels).temperature,
    TemperatureScaling(criterion="ece").fit(logits, labels).temperature,
    score_by_class(rows)[0].gap,
    thresholded_adaptive_calibration_error(rows),
    "numba" in sys.modules,
]))
"""


def test_a_kernel_is_compiled_once_there_was_enough_to_do(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(dispatch, "_KERNELS", dict.fromkeys(["probe", "other"], ("cache", "cache_folder")))
    monkeypatch.setattr(dispatch, "why_fallback", lambda: None)
    monkeypatch.setattr(dispatch, "_SWITCHED_OFF", None)
    monkeypatch.setattr(dispatch, "_mark", lambda folder, name, dtype: folder / f"{name}-{dtype}-here.ready")
    dispatch._announce.cache_clear()
    assert dispatch.find_kernel("probe", "f", dispatch._WORTH_COMPILING // 2) is None
    kernel = dispatch.find_kernel("probe", "f", dispatch._WORTH_COMPILING // 2)
    assert capsys.readouterr().err == ""
    kernel()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "compiling for this processor" in said
    kernel()
    dispatch.find_kernel("other", "f", dispatch._WORTH_COMPILING)()
    dispatch._ready.pop(("other", "f"))
    assert dispatch.find_kernel("probe", "f", 1) is not None
    assert dispatch.find_kernel("probe", "d", 1) is None
    assert capsys.readouterr().err == ""
    # Another process finds what this one has left.
    dispatch._ready.pop(("probe", "f"))
    dispatch.is_ready.cache_clear()
    assert dispatch.find_kernel("probe", "f", dispatch._WORTH_LOADING) is not None
    dispatch.is_ready.cache_clear()


def test_threads_that_end_in_any_order_leave_no_backend_behind():
    begun, ended = threading.Event(), threading.Event()

    def first():
        with dispatch.use_backend("fallback"):
            begun.set()
            ended.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    begun.wait(10)
    with dispatch.use_backend("fallback"):
        ended.set()
        thread.join()
    assert dispatch._forced.get() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_process_does_not_compile(monkeypatch):
    monkeypatch.setattr(dispatch, "_KERNELS", {"forked": ("cache", "cache_folder")})
    monkeypatch.setattr(dispatch, "why_fallback", lambda: None)
    monkeypatch.setattr(dispatch, "_SWITCHED_OFF", None)
    monkeypatch.setattr(dispatch, "is_ready", lambda name, dtype: False)
    child = os.fork()
    if child == 0:
        os._exit(0 if dispatch.find_kernel("forked", "f", dispatch._WORTH_COMPILING) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert dispatch.find_kernel("forked", "f", dispatch._WORTH_COMPILING) is not None


@pytest.mark.skipif(dispatch.why_fallback() is not None, reason="nothing is compiled here")
def test_machine_code_that_was_cut_off_is_told_with_what_to_do(tmp_path):
    script = """
import numpy as np
from equipoise.kernels import dispatch
from equipoise.metrics import CalibrationState
with dispatch.use_backend("compiled"):
    CalibrationState(2).update(probs=np.full((9, 2), 0.5), labels=np.zeros(9, int))
"""
    output_of(script, NUMBA_CACHE_DIR=str(tmp_path), EQUIPOISE_PLAIN="0")
    written = list(tmp_path.rglob("*.nbi"))
    assert written
    for file in written:
        file.write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "EQUIPOISE_PLAIN": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"machine code in {written[0].parents[1]}" in done.stderr.splitlines()[-1]
    assert done.stderr.endswith("Delete that folder; it is made again.\n")


def test_what_cannot_be_kept_is_told_with_what_to_do(monkeypatch, tmp_path):
    def out_of_room():
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(dispatch, "_KERNELS", {"full": ("cache", "out_of_room")})
    monkeypatch.setattr(cache, "out_of_room", out_of_room, raising=False)
    with pytest.raises(OSError, match=r"No space left on device.* set NUMBA_CACHE_DIR"):
        dispatch._compile_and_run("full", "f", ())


@pytest.mark.parametrize(("word", "is_plain"), [("", False), ("0", False), ("No", False), ("1", True)])
def test_the_switch_is_off_where_a_word_says_so(word, is_plain):
    ask = "from equipoise.kernels import dispatch; print(bool(dispatch._SWITCHED_OFF))"
    assert output_of(ask, EQUIPOISE_PLAIN=word) == f"{is_plain}\n"


@pytest.mark.parametrize("error", [ImportError, SystemError, AttributeError, OSError])
def test_whatever_keeps_the_compiler_from_loading_leaves_the_plain_way(error, monkeypatch):
    def fail(name):
        raise error("numpy.core does not fit")

    monkeypatch.setattr(dispatch, "_SWITCHED_OFF", None)
    monkeypatch.setattr(dispatch, "import_module", fail)
    assert dispatch.why_fallback.__wrapped__() == "numba cannot be loaded: numpy.core does not fit"


LITTLE = """
import sys
from equipoise import Predictions, score
score(Predictions(probs=[[0.25, 0.75], [0.5, 0.5]], labels=[1, 0]))
print("numba" in sys.modules)
"""


def output_of(script, *way, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script, *way],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def numbers(*way, **environment):
    return json.loads(output_of(SCORES, *way, **environment))


def test_little_work_does_not_load_the_compiler(tmp_path):
    assert output_of(LITTLE, EQUIPOISE_PLAIN="0", NUMBA_CACHE_DIR=str(tmp_path)) == "False\n"


def test_a_compiler_that_no_longer_loads_leaves_the_plain_way(monkeypatch, tmp_path):
    monkeypatch.setattr(dispatch, "_SWITCHED_OFF", None)
    monkeypatch.setattr(dispatch, "why_fallback", lambda: "numba cannot be loaded")
    monkeypatch.setattr(dispatch, "cache_folder", lambda: tmp_path)
    (tmp_path / "gone-f-here.ready").touch()
    assert dispatch.find_kernel("gone", "f", dispatch._WORTH_COMPILING) is None


@pytest.mark.skipif(dispatch.why_fallback() is not None, reason="nothing is compiled here")
@pytest.mark.slow
@pytest.mark.parametrize("without", ["switch", "numba"])
def test_everything_runs_without_a_compiler(without, tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('not for this Python')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    plain = {"EQUIPOISE_PLAIN": "1"} if without == "switch" else {"EQUIPOISE_PLAIN": "0", "PYTHONPATH": path}
    *found, with_numba = numbers(**plain)
    assert not with_numba
    *known, with_numba = numbers("compiled", EQUIPOISE_PLAIN="0")
    assert with_numba
    assert found == pytest.approx(known, rel=1e-9, abs=1e-12)
