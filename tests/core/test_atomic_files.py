"""Files that are there whole or not at all."""

import os
import stat
import subprocess
import sys

import pytest
import torch

from equipoise.calibrators import TemperatureScaling
from equipoise.core import Predictions, write_predictions
from equipoise.core.atomic_files import atomic_path, write_bytes, write_text
from equipoise.core.errors import FileError
from equipoise.integrations.saved_model import save_model


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def stop():
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        stop()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_the_name_appears_only_at_the_end(tmp_path):
    target = tmp_path / "a.npz"
    with atomic_path(target) as temporary:
        temporary.write_bytes(b"new")
        assert not target.exists()
        assert temporary.suffix == ".npz"
        assert temporary.parent == tmp_path
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_permissions_follow_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "a.txt", "x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_the_umask_of_the_process_is_never_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was set"))
    write_text(tmp_path / "a.txt", "x")


def test_no_room_on_the_disk(tmp_path):
    target = tmp_path / "a.npz"
    script = f"""
import resource
import numpy as np
from pathlib import Path
from equipoise.core import FileError, Predictions, write_predictions
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
predictions = Predictions(probs=np.random.default_rng(0).random(10_000), labels=np.zeros(10_000, int))
for ending in (".npz", ".csv", ".tsv", ".parquet", ".safetensors", ".npy"):
    path = Path({str(tmp_path)!r}) / f"a{{ending}}"
    other = path.with_name("b.npy")
    try:
        write_predictions(predictions, (path, other) if ending == ".npy" else path)
    except FileError as error:
        assert str(path) in str(error) and "cannot be written" in str(error), error
    else:
        raise SystemExit(f"{{ending}} was written")
assert not list(path.parent.iterdir()), list(path.parent.iterdir())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not target.exists()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileError, match=r"nowhere.a\.txt: cannot be written \(No such file"):
        write_text(tmp_path / "nowhere" / "a.txt", "x")


def test_errors_of_other_files_stay_as_they_are(tmp_path):
    with pytest.raises(FileNotFoundError, match="other"), atomic_path(tmp_path / "a.txt"):
        (tmp_path / "other").read_text()


def test_long_names_leave_room(tmp_path):
    name = "x" * 251 + ".txt"
    write_text(tmp_path / name, "x")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_text_is_utf8_with_plain_newlines(tmp_path):
    write_text(tmp_path / "a.txt", "Wärme\n")
    assert (tmp_path / "a.txt").read_bytes() == "Wärme\n".encode()


def test_replaces(tmp_path):
    for content in (b"one", b"two"):
        write_bytes(tmp_path / "a.bin", content)
    assert (tmp_path / "a.bin").read_bytes() == b"two"


def test_what_is_flushed_is_open_for_writing(tmp_path, monkeypatch):
    """Windows refuses to flush a file that is open for reading only."""
    fcntl = pytest.importorskip("fcntl")
    flags = []
    monkeypatch.setattr(os, "fsync", lambda handle: flags.append(fcntl.fcntl(handle, fcntl.F_GETFL)))
    write_text(tmp_path / "a.txt", "x")
    assert [flag & os.O_ACCMODE for flag in flags] == [os.O_RDWR]


def test_a_library_that_replaces_the_file_does_not_change_its_permissions(tmp_path):
    old = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "a.bin") as temporary:
            private = tmp_path / "private"
            private.touch(mode=0o600)
            private.replace(temporary)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.bin").stat().st_mode) == 0o640


@pytest.mark.parametrize("kind", ["predictions", "calibrator", "model"])
def test_safetensors_files_have_the_permissions_of_other_files(kind, tmp_path):
    path = tmp_path / "a.safetensors"
    if kind == "predictions":
        write_predictions(Predictions(probs=[[0.9, 0.1]], labels=[0]), path)
    elif kind == "calibrator":
        TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1]).save(path)
    else:
        save_model(path, torch.nn.Linear(2, 2))
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    "save",
    [
        "TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1]).save(path)",
        "save_model(path, torch.nn.Linear(200, 200))",
        "write_predictions(Predictions(probs=[[0.9, 0.1]] * 999, labels=[0] * 999), path)",
    ],
)
def test_no_room_on_the_disk_for_safetensors(save, tmp_path):
    path = tmp_path / "a.safetensors"
    script = f"""
import resource, signal
import torch
from equipoise.calibrators import TemperatureScaling
from equipoise.core import FileError, Predictions, write_predictions
from equipoise.integrations.saved_model import save_model
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = {str(path)!r}
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
try:
    {save}
except FileError as error:
    assert path in str(error), error
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "refused", done.stderr
    assert list(tmp_path.iterdir()) == []
