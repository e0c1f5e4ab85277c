"""The line that tells how far a comparison is."""

import io
import os
import shutil

from equipoise.experiments import Spec
from equipoise.experiments.engines.progress import StatusLine
from helpers.tiny_runs import TABLE


class Terminal(io.StringIO):
    def isatty(self):
        return True


def line(tmp_path, times, stream=None):
    spec = Spec.from_table(TABLE)
    return spec, StatusLine(
        [spec] * 4, tmp_path, quiet=False, stream=stream or Terminal(), clock=lambda: next(times)
    )


def test_time_left_counts_what_was_gained_since_the_start(tmp_path):
    """Two of four runs were done before; one more took 10 seconds, so the last takes about 10."""
    _, status = line(tmp_path, iter([0.0, 0.0, 10.0]))
    assert status.text(done=2, running=[]) == "2/4 runs done"
    assert status.text(done=3, running=[]) == "3/4 runs done, about 0:10 left"


def test_the_line_never_wraps(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((20, 24)))
    stream = Terminal()
    spec, status = line(tmp_path, iter([0.0, 0.0]), stream)
    status.show(done=0, running=[spec] * 3)
    assert len(stream.getvalue().removeprefix("\r\x1b[K")) == 19


def test_a_pipe_gets_whole_lines_only(tmp_path):
    stream = io.StringIO()
    spec, status = line(tmp_path, iter([0.0, 1.0, 2.0]), stream)
    status.show(done=0, running=[spec])
    status.print("1/4 done")
    assert stream.getvalue() == "1/4 done\n"


def test_a_pipe_gets_a_line_about_running_runs_once_a_minute(tmp_path):
    stream = io.StringIO()
    times = iter([0.0, 30.0, 61.0, 61.0, 61.0, 90.0])
    spec, status = line(tmp_path, times, stream)
    for _ in range(3):
        status.show(done=0, running=[spec])
    assert stream.getvalue() == "0/4 runs done · ce seed 0 epoch 0/2\n"
