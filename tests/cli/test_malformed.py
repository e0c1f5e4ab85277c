"""Hundreds of malformed files through the command line: one sentence, exit 2, nothing else, in little memory."""

import io
import json
import pickle
import struct
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

from equipoise import write_predictions
from equipoise.core.reading.formats import WRITERS
from helpers.command_line import run
from helpers.hostile_files import WAYS, Bomb, damaged, made, npy, npy_header


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def zipped(*members):
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore", UserWarning)  # a name twice is what one of them is about
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


PROBS = np.full((6, 3), 1 / 3, np.float32)
LABELS = np.array([0, 1, 2, 0, 1, 2])
NAN = PROBS.copy()
NAN[2, 1] = np.nan
LOGITS = PROBS.copy()
LOGITS[1, 1] = np.inf


def written_by_hand():
    """Return contents by file name, each wrong in its own way."""
    return {
        "empty.npz": b"",
        "text.npz": b"these are not arrays",
        "no-arrays.npz": zipped(),
        "folder.npz": zipped(("logits/", b"")),
        "no-labels.npz": npz(probs=PROBS),
        "no-scores.npz": npz(labels=LABELS),
        "ambiguous.npz": npz(scores=PROBS, labels=LABELS),
        "both.npz": npz(probs=PROBS, logits=PROBS, labels=LABELS),
        "short-labels.npz": npz(probs=PROBS, labels=LABELS[:4]),
        "no-rows.npz": npz(probs=PROBS[:0], labels=LABELS[:0]),
        "nan.npz": npz(probs=NAN, labels=LABELS),
        "infinite.npz": npz(logits=LOGITS, labels=LABELS),
        "negative.npz": npz(probs=PROBS - 1, labels=LABELS),
        "unnormalized.npz": npz(probs=PROBS * 2, labels=LABELS),
        "percent.npz": npz(confidence=np.array([90.0]), predicted=np.array([1]), labels=np.array([1])),
        "from-one.npz": npz(probs=PROBS, labels=LABELS + 1),
        "negative-labels.npz": npz(probs=PROBS, labels=LABELS - 1),
        "float-labels.npz": npz(probs=PROBS, labels=LABELS + 0.5),
        "text-labels.npz": npz(probs=PROBS, labels=np.array(list("abcabc"))),
        "complex.npz": npz(probs=PROBS.astype(complex), labels=LABELS),
        "times.npz": npz(probs=PROBS, labels=LABELS.astype("datetime64[s]")),
        "structured.npz": npz(probs=np.zeros(6, [("a", "f4")]), labels=LABELS),
        "scalar.npz": npz(probs=np.float32(0.5), labels=LABELS),
        "bad-weights.npz": npz(probs=PROBS, labels=LABELS, weights=-np.ones(6)),
        "no-weights.npz": npz(probs=PROBS, labels=LABELS, weights=np.zeros(6)),
        "objects.npz": npz(probs=np.array([[Bomb()]], object), labels=LABELS),
        "pickled-labels.npz": zipped(("probs.npy", npy(PROBS)), ("labels.npy", pickle.dumps(Bomb()))),
        "twice.npz": zipped(
            ("probs.npy", npy(PROBS)), ("probs.npy", npy(PROBS)), ("labels.npy", npy(LABELS))
        ),
        "climbing.npz": zipped(("../probs.npy", npy(PROBS)), ("../../labels.npy", npy(LABELS))),
        "huge-shape.npz": zipped(("probs.npy", npy_header((10**12, 10))), ("labels.npy", npy(LABELS))),
        "negative-shape.npz": zipped(("probs.npy", npy_header((-5, 3))), ("labels.npy", npy(LABELS))),
        "code-in-header.npz": zipped(
            ("probs.npy", npy_header("__import__('os').abort()")),
        ),
        "python.pkl": pickle.dumps(Bomb()),
        "torch.pt": pickle.dumps(Bomb()),
        "lonely.npy": npy(PROBS),
        "notes.txt": b"hello",
        "no-ending": b"hello",
        "empty.csv": b"",
        "header.csv": b"labels,probs\n",
        "ragged.csv": b"labels,confidence,predicted\n1,0.5,1\n1,0.5\n",
        "words.csv": b"labels,confidence,predicted\n1,high,1\n",
        "nan.csv": b"labels,confidence,predicted\n1,nan,1\n",
        "binary.csv": bytes(range(256)) * 8,
        "utf16.csv": "labels,probs\n1,0.5\n".encode("utf-16"),
        "null.csv": b"labels,confidence,predicted\n1,\x000.5,1\n",
        "columns.csv": b"labels,prob_0,prob_2\n1,0.5,0.5\n",
        "same-name.csv": b"labels,labels,probs\n1,1,0.5\n",
        "quote.csv": b'labels,confidence,predicted\n1,"0.5,1\n' + b"x" * 5000,
        "steering.csv": b"labels,\x1b[2J\x1b[31mred,x\n1,2,3\n",
        "long-name.csv": b"labels," + b"x" * 200_000 + b"\n1,2\n",
        "many-columns.csv": b"labels," + b",".join(b"c%d" % i for i in range(20_000)) + b"\n",
        "huge-number.csv": b"labels,confidence,predicted\n" + b"9" * 5000 + b",0.5,1\n",
        "text.parquet": b"PAR1 this is none PAR1",
        "empty.parquet": b"",
        "text.safetensors": b"hello, tensors",
        "huge-header.safetensors": struct.pack("<Q", 1 << 60) + b"{}",
        "nested.safetensors": struct.pack("<Q", 20_000) + (b"[" * 20_000),
        "outside.safetensors": _safetensors(
            {"probs": {"dtype": "F32", "shape": [9], "data_offsets": [0, 999]}}
        ),
        "overflow.safetensors": _safetensors(
            {"probs": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 4]}}
        ),
    }


def _safetensors(header):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(4)


FILES = written_by_hand()


def zip_bomb():
    """A small archive that unfolds to 128 megabytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("probs.npy", "w", force_zip64=True) as member:
            member.write(npy_header((1 << 25, 1)))
            block = bytes(1 << 24)
            for _ in range(8):
                member.write(block)
        archive.writestr("labels.npy", npy(LABELS))
    return stream.getvalue()


def check_refusal(code, out, err, name):
    lines = err.splitlines()
    assert code == 2, (name, out, err)
    assert out == "", name
    assert len(lines) == 1, (name, err)
    assert lines[0].startswith("equipoise: ")
    assert len(lines[0]) < 700, name
    assert lines[0].isprintable(), name


@pytest.mark.parametrize("name", FILES)
def test_wrong_files(name, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    check_refusal(*run(capsys, "audit", str(path)), name)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_damaged_files(ending, how, tmp_path, capsys):
    """Damage that a format cannot notice may leave a readable file; then the audit must simply work."""
    generator = np.random.default_rng([*ending.encode(), *how.encode(), 8])
    path, refused = tmp_path / f"a{ending}", 0
    for kind in ("logits", "probs", "top1"):
        write_predictions(made(kind), path)
        content = path.read_bytes()
        for _ in range(4):
            path.write_bytes(damaged(content, generator, how))
            code, out, err = run(capsys, "audit", str(path), "--resamples", "2")
            if code:
                refused += 1
                check_refusal(code, out, err, how)
            else:
                assert "Audit of" in out
    assert refused


@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_every_cut_is_noticed(ending, tmp_path, capsys):
    path = tmp_path / f"a{ending}"
    write_predictions(made("probs"), path)
    content = path.read_bytes()
    for share in (0.01, 0.2, 0.5, 0.9, 0.97):
        path.write_bytes(content[: int(len(content) * share)])
        code, out, err = run(capsys, "audit", str(path), "--resamples", "2")
        if ending in (".csv", ".tsv") and code == 0:
            continue  # text that ends at the end of a line is whole
        check_refusal(code, out, err, share)


@pytest.mark.parametrize(
    "name",
    [
        "missing.npz",
        "a\nb.npz",
        "\x1b[31mred.npz",
        "x" * 5000 + ".npz",
        "*.npz",
        "~.npz",
        "-.npz",
        "con\x07.csv",
        "",
    ],
)
def test_hostile_names(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_refusal(*run(capsys, "audit", "--", name), name)


def test_folders_and_devices(tmp_path, capsys):
    for path in (tmp_path, "/dev/zero", "/dev/null"):
        check_refusal(*run(capsys, "audit", str(path)), path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": "equipoise.calibrator"}',
        b'{"format": "equipoise.calibrator", "version": "x"}',
        b'{"format": "equipoise.calibrator", "version": 1, "parameters": 3}',
        b'{"format": "equipoise.calibrator", "version": 99}',
        pickle.dumps(Bomb()),
    ],
)
def test_wrong_calibrators(content, tmp_path, capsys):
    path, data = tmp_path / "map.json", tmp_path / "a.npz"
    path.write_bytes(content)
    data.write_bytes(npz(probs=PROBS, labels=LABELS))
    output = tmp_path / "out.npz"
    check_refusal(*run(capsys, "apply", str(path), str(data), "-o", str(output)), content[:20])
    assert not output.exists()


BOUNDED = """
import resource, sys
import equipoise.cli.app
from equipoise.cli import main
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
codes = [main(["audit", path]) for path in sys.argv[1:]]
print(*codes, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
def test_bombs_stay_small(tmp_path):
    bombs = {"bomb.npz": zip_bomb(), "shape.npz": FILES["huge-shape.npz"]}
    for name, content in bombs.items():
        (tmp_path / name).write_bytes(content)
    words = [sys.executable, "-c", BOUNDED, *(str(tmp_path / name) for name in bombs)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    *codes, grown = map(int, done.stdout.split())
    assert codes == [2, 2]
    assert len(done.stderr.splitlines()) == 2
    assert grown < 64, f"{grown} MB"


def test_remedies_name_options_but_leave_code_alone(tmp_path, capsys):
    for name, remedy in (
        ("torch.pt", "numpy.savez(path, logits=..., labels=...)"),
        ("ambiguous.npz", "Pass --logits 'scores' or --probs 'scores'."),
        ("no-labels.npz", 'Name the column: --labels "..."'),
    ):
        (tmp_path / name).write_bytes(FILES[name])
        assert remedy in run(capsys, "audit", str(tmp_path / name))[2]


def test_there_are_more_than_two_hundred():
    n_damaged = len(WRITERS) * len(WAYS) * 3 * 4
    assert len(FILES) + n_damaged > 200
