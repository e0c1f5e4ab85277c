"""Files by address, and tables whose folders are columns: the rows of one file, wherever its parts lie."""

import io
import json
import pickle
import shutil
import sys
from collections import namedtuple

import numpy as np
import pytest

from equipoise import iter_predictions, read_predictions
from equipoise.cli import main
from equipoise.core import DataError
from equipoise.core.errors import MissingExtraError
from equipoise.core.reading import storage
from equipoise.core.reading.files import FilePart, find_sources
from equipoise.integrations.ray import _sum_file
from helpers.object_store import object_store

pa = pytest.importorskip("pyarrow")
fs = pytest.importorskip("pyarrow.fs")
pq = pytest.importorskip("pyarrow.parquet")

RNG = np.random.default_rng(0)
DAYS = ("2026-03-01", "2026-03-02")
PLACES = [f"day={day}/site={site}/part-0.parquet" for day in DAYS for site in (1, 2)]


def as_bytes(**columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, write_page_checksum=True)
    return file.getvalue()


def rows(n=30, **extra):
    return {
        "predicted": RNG.integers(0, 3, n),
        "label": RNG.integers(0, 3, n),
        "confidence": RNG.uniform(0.4, 1, n),
        **extra,
    }


PARTS = {place: rows() for place in PLACES}
FILES = {
    **{place: as_bytes(**columns) for place, columns in PARTS.items()},
    "_SUCCESS": b"",
    "log/x.parquet": b"no",
}


@pytest.fixture(params=["folder", "file", "memory", "s3"])
def table(request, tmp_path):
    """The same partitioned table here, by an address of here, in memory, and on an object store."""
    if request.param == "s3":
        with object_store({f"bucket/rows/{place}": content for place, content in FILES.items()}) as options:
            yield lambda pattern="": f"s3://me:secret@bucket/rows{pattern}?{options}"
        return
    base = (
        f"fsspec+memory:///{tmp_path.name}/rows" if request.param == "memory" else f"file://{tmp_path}/rows"
    )
    put(base, FILES)
    shown = str(tmp_path / "rows") if request.param == "folder" else base
    yield lambda pattern="": f"{shown}{pattern}"


def put(base, files):
    system, folder = fs.FileSystem.from_uri(base)
    for place, content in files.items():
        system.create_dir(f"{folder}/{place}".rsplit("/", 1)[0], recursive=True)
        with system.open_output_stream(f"{folder}/{place}") as stream:
            stream.write(content)


@pytest.mark.parametrize("pattern", ["", "/day=*/site=[12]/*.parquet"])
def test_the_parts_are_one_table_and_folders_are_columns(table, pattern):
    found = read_predictions(table(pattern), groups=["day", "site"])
    for name in ("label", "predicted", "confidence"):
        column = found.labels if name == "label" else getattr(found, name)
        np.testing.assert_array_equal(column, np.concatenate([part[name] for part in PARTS.values()]))
    np.testing.assert_array_equal(found.groups["day"], np.repeat(DAYS, 60))
    np.testing.assert_array_equal(found.groups["site"], np.tile(np.repeat([1, 2], 30), 2))
    chunks = list(iter_predictions(table(pattern), groups=["day"], chunk_rows=7))
    assert [len(chunk) for chunk in chunks] == [7, 7, 7, 7, 2] * 4


def test_one_file_by_address(table):
    found = read_predictions(table(f"/{PLACES[2]}"))
    np.testing.assert_array_equal(found.labels, PARTS[PLACES[2]]["label"])
    assert not found.groups


def test_the_audit_looks_at_every_folder(table, capsys):
    assert main(["audit", table(), "--by", "site", "--json"]) == 0
    said = capsys.readouterr().out
    found = json.loads(said)
    assert [one["n_samples"] for one in found["groups"]["site"]] == [60, 60]
    assert "secret" not in said
    assert main(["audit", table(), "--by", "week"]) == 2
    said = capsys.readouterr().err
    assert "holds no column 'week'" in said
    assert "part-0.parquet" in said


def test_the_report_reads_what_the_audit_does(table, tmp_path, capsys):
    page = tmp_path / "report.md"
    words = ["report", table(), "-o", str(page), "--by", "site", "--resamples", "20"]
    assert main([*words, "--calib-share", "0.5"]) == 0
    output = capsys.readouterr()
    assert "secret" not in output.out + output.err + page.read_text(encoding="utf-8")
    assert main(words) == 0
    text = page.read_text(encoding="utf-8")
    assert "120 rows" in text
    assert "secret" not in text + capsys.readouterr().out
    assert main(["report", table(), table("/day=2026-03-01"), "-o", str(page)]) == 2
    assert "secret" not in capsys.readouterr().err


def test_files_can_be_sent_to_other_processes(table):
    sources = pickle.loads(pickle.dumps(find_sources(table())))
    assert all(isinstance(source, FilePart) for source in sources)
    assert [_sum_file(source, {}, (), 15, "right").n_samples for source in sources] == [30] * 4


def test_nothing_there(table):
    with pytest.raises(DataError, match="there is no such file"):
        read_predictions(table("/nothing.parquet"))
    with pytest.raises(DataError, match="no file matches this pattern"):
        read_predictions(table("/day=*/*.csv"))


@pytest.mark.parametrize(
    "damage", [lambda content: content[:-40], lambda content: content[:60] + b"\xff" * 20 + content[80:]]
)
def test_what_guards_files_guards_them_elsewhere(tmp_path, damage):
    base = f"fsspec+memory:///{tmp_path.name}"
    put(base, {"a.parquet": damage(FILES[PLACES[0]]), "b.parquet": FILES[PLACES[0]]})
    with pytest.raises(DataError, match=r"^a\.parquet: is cut off, damaged"):
        read_predictions(f"{base}/a.parquet")
    with pytest.raises(DataError, match=r"b\.parquet: would grow .* max_bytes="):
        read_predictions(f"{base}/b.parquet", max_bytes=100)


def test_other_formats_by_address(tmp_path):
    base = f"fsspec+memory:///{tmp_path.name}"
    archive = io.BytesIO()
    np.savez(archive, probs=[[0.7, 0.3]], labels=[0])
    put(
        base,
        {
            "a.npz": archive.getvalue(),
            "b.csv": b"prob_0,prob_1,label\n0.6,0.4,1\n",
            "c.npy": b"",
            "d.txt": b"",
        },
    )
    assert read_predictions([f"{base}/a.npz", f"{base}/b.csv"]).probs[:, 0].tolist() == [0.7, 0.6]
    with pytest.raises(DataError, match=r"\.npy files come in pairs"):
        read_predictions(f"{base}/c.npy")
    with pytest.raises(DataError, match="the ending must be one of"):
        read_predictions(f"{base}/d.txt")


def test_a_file_that_changes_while_it_is_fetched_is_refused(tmp_path, monkeypatch):
    base = f"fsspec+memory:///{tmp_path.name}"
    put(base, {"a.csv": b"prob_0,prob_1,label\n0.6,0.4,1\n"})
    copy = shutil.copyfileobj

    def slowly(source, target, length):
        copy(source, target, length)
        put(base, {"a.csv": b"prob_0,prob_1,label\n0.6,0.4,0\n0.6,0.4,0\n"})

    monkeypatch.setattr(storage.shutil, "copyfileobj", slowly)
    with pytest.raises(DataError, match=r"a\.csv has changed while it was read"):
        read_predictions(f"{base}/a.csv")


def test_a_file_for_which_there_is_no_room_is_refused(tmp_path, monkeypatch):
    base = f"fsspec+memory:///{tmp_path.name}"
    put(base, {"a.csv": b"prob_0,prob_1,label\n0.6,0.4,1\n"})
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda _: namedtuple("Usage", "free")(10))
    with pytest.raises(DataError, match=r"has 30 bytes, and .* has 10 bytes free. Set TMPDIR"):
        read_predictions(f"{base}/a.csv")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nowhere://bucket/a.parquet", "nowhere://bucket/a.parquet: cannot be read .Unrecognized filesystem"),
        ("s3://me:secret@*/a.parquet", r"^s3://\*/a.parquet: a pattern must begin with a name"),
        ("s3://me:secret@/a.parquet", "^s3:///a.parquet: cannot be read"),
        ("fsspec+nothing://me:secret@place", "Protocol not known"),
    ],
)
def test_addresses_that_lead_nowhere_and_keep_their_secrets(address, message):
    with pytest.raises(DataError, match=message) as caught:
        read_predictions(address)
    assert "secret" not in str(caught.value)


def test_addresses_of_fsspec_without_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"fsspec is needed .* pip install 'equipoise\[remote\]'"):
        read_predictions("fsspec+memory:///rows/a.parquet")


@pytest.mark.parametrize("command", ["audit", "report"])
def test_a_saved_state_is_not_fetched(command, capsys):
    assert main([command, "s3://bucket/monday.state"]) == 2
    assert "saved states are small and read from this machine" in capsys.readouterr().err


def test_what_folders_say(tmp_path):
    base = f"file://{tmp_path}"
    put(
        base,
        {
            "month=03/site=New%20York/a.parquet": as_bytes(**rows(2)),
            "month=11/site=__HIVE_DEFAULT_PARTITION__/a.parquet": as_bytes(**rows(3)),
            "month=12/site=x/a.parquet": as_bytes(**rows(1, month=["own"])),
        },
    )
    found = read_predictions(tmp_path, groups=["month"])
    assert found.groups["month"].tolist() == ["03", "03", "11", "11", "11", "own"]
    assert (
        read_predictions(tmp_path / "month=03", groups=["site"]).groups["site"].tolist() == ["New York"] * 2
    )
    with pytest.raises(DataError, match=r"month=11.*`site` has a missing value in the name of its folder"):
        read_predictions(tmp_path, groups=["site"])


def test_a_folder_may_tell_the_label(tmp_path):
    columns = {"prob_0": [0.9, 0.2], "prob_1": [0.1, 0.8]}
    put(f"file://{tmp_path}", {f"label={label}/a.parquet": as_bytes(**columns) for label in (0, 1)})
    assert read_predictions(tmp_path).labels.tolist() == [0, 0, 1, 1]
    names = {
        f"truth={name}/a.parquet": as_bytes(predicted=["cat", "dog"], confidence=[0.9, 0.8])
        for name in ("cat", "eel")
    }
    put(f"file://{tmp_path}/named", names)
    found = read_predictions(tmp_path / "named", labels="truth")
    assert found.class_names == ("cat", "dog", "eel")
    assert found.labels.tolist() == [0, 0, 2, 2]


@pytest.fixture
def linked(tmp_path):
    """A table with one part, and another part outside of it."""
    for folder in ("table/split=tune", "elsewhere/split=test"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.parquet").write_bytes(as_bytes(**rows()))
    return tmp_path


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("table/split=test", "elsewhere/split=test"),
        ("table/split=copy", "table/split=tune"),
        ("table/split=tune/loop=1", "table"),
        ("table/split=tune/b.parquet", "elsewhere/split=test/a.parquet"),
        ("table/split=tune/b.parquet", "table/split=tune/a.parquet"),
    ],
)
def test_links_within_a_table_are_not_followed(linked, link, target):
    (linked / link).symlink_to(linked / target)
    with pytest.raises(DataError, match=r"symbolic link|same file") as raised:
        read_predictions(linked / "table")
    assert str(linked / link) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_link_that_is_named_is_followed(linked):
    (linked / "folder").symlink_to(linked / "elsewhere")
    (linked / "file.parquet").symlink_to(linked / "elsewhere/split=test/a.parquet")
    assert len(read_predictions(linked / "folder")) == len(read_predictions(linked / "file.parquet")) == 30


def test_a_link_to_a_file_of_the_same_folder_tree_is_read_once(linked):
    (linked / "table/store").mkdir()
    (linked / "table/split=tune/a.parquet").rename(linked / "table/store/a.parquet")
    (linked / "table/split=tune/a.parquet").symlink_to(linked / "table/store/a.parquet")
    assert len(read_predictions(linked / "table")) == 30
