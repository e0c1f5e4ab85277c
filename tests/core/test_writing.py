"""What is written reads back as it was, in every format."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from equipoise import iter_predictions, read_predictions, write_predictions
from equipoise.core import DataError, Predictions, Rows, SplitError
from equipoise.core.reading.formats import WRITERS
from equipoise.core.rows import check_disjoint

ENDINGS = sorted(WRITERS)

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
group_names = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=5)


@st.composite
def some_predictions(draw):
    """Any kind, shape, precision and company."""
    n, k = draw(st.integers(1, 6)), draw(st.integers(2, 4))
    width = draw(st.sampled_from([32, 64]))
    labels = draw(hnp.arrays(np.int64, n, elements=st.integers(0, k - 1)))
    company = {
        "weights": draw(st.none() | hnp.arrays(np.float64, n, elements=st.floats(0.5, 1e6))),
        "split": draw(st.sampled_from([None, "train", "tune", "calib", "test"])),
        "class_names": draw(st.none() | st.lists(words, min_size=k, max_size=k, unique=True)),
        "ids": draw(
            st.none() | st.lists(st.integers(), min_size=n, max_size=n).map(lambda ids: [str(i) for i in ids])
        ),
        "groups": draw(st.dictionaries(group_names.map(str.lower), group_columns(n), max_size=2)),
    }
    kind = draw(st.sampled_from(["logits", "probs", "top1", "column"]))
    if kind == "top1":
        scores = {
            "predicted": draw(hnp.arrays(np.int64, n, elements=st.integers(0, k - 1))),
            "confidence": draw(hnp.arrays(f"f{width // 8}", n, elements=st.floats(0, 1, width=width))),
            "n_classes": draw(st.sampled_from([None, k])),
        }
    elif kind == "column":
        scores = {"probs": draw(hnp.arrays(f"f{width // 8}", n, elements=st.floats(0, 1, width=width)))}
        labels, company["class_names"] = labels % 2, None
    else:
        logits = draw(hnp.arrays(f"f{width // 8}", (n, k), elements=st.floats(-1e4, 1e4, width=width)))
        given = Predictions(logits=logits, labels=labels)
        scores = {kind: logits if kind == "logits" else given.probs}
    predictions = Predictions(labels=labels, **scores, **company)
    if draw(st.booleans()) and kind == "logits":
        fitted_on = draw(st.none() | st.just(Rows.from_ids(["x", "y"])) | st.just(predictions.rows))
        return predictions.with_scores(logits=predictions.scores / 2, fitted_on=fitted_on)
    return predictions


def group_columns(n):
    return st.one_of(
        st.lists(words, min_size=n, max_size=n).map(lambda texts: np.array(texts, dtype=np.str_)),
        hnp.arrays(np.int32, n),
        hnp.arrays(np.bool_, n),
        hnp.arrays(np.float64, n, elements=st.floats(allow_nan=False)),
    )


def assert_same(one, two):
    for name in ("kind", "class_names", "split", "n_classes", "one_column", "fingerprint", "has_kept_rows"):
        assert getattr(one, name) == getattr(two, name), name
    for name in ("labels", "weights", "scores", "confidence", "predicted"):
        mine, theirs = getattr(one, name), getattr(two, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            assert mine.dtype == theirs.dtype, name
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
    np.testing.assert_array_equal(one.rows.hashes, two.rows.hashes)
    assert one.rows.named == two.rows.named
    assert set(one.groups) == set(two.groups)
    for name, column in one.groups.items():
        assert column.dtype.kind == two.groups[name].dtype.kind
        np.testing.assert_array_equal(column, two.groups[name])
    assert (one.fitted_on is None) == (two.fitted_on is None)
    if one.fitted_on is not None:
        np.testing.assert_array_equal(one.fitted_on.hashes, two.fitted_on.hashes)
        assert one.fitted_on.named == two.fitted_on.named


@pytest.mark.parametrize("ending", ENDINGS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(predictions=some_predictions())
def test_round_trip(tmp_path, ending, predictions):
    path = tmp_path / f"a{ending}"
    write_predictions(predictions, path)
    assert_same(predictions, read_predictions(path))
    rows = 0
    for chunk in iter_predictions(path, chunk_rows=2):
        assert_same(predictions.take(slice(rows, rows + 2)), chunk)
        rows += len(chunk)
    assert rows == len(predictions)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failure_leaves_the_old_file(tmp_path, ending, monkeypatch):
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"old")

    def fail(temporary, columns, notes):
        temporary.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("equipoise.core.writing.WRITERS", {ending: fail})
    with pytest.raises(OSError, match="disk full"):
        write_predictions(Predictions(probs=[0.5], labels=[1]), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_csv_is_plain_where_nothing_needs_a_note(tmp_path):
    predictions = Predictions(probs=[[0.25, 0.75], [1.0, 0.0]], labels=[1, 0], class_names=["cat", "dog"])
    write_predictions(predictions, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "prob_cat,prob_dog,labels\n0.25,0.75,1\n1.0,0.0,0\n"


@pytest.mark.parametrize(
    "names", [["0", "1"], ["1", "0"], ["a", "A"], ["", "x"], [" a", "a"], ["1.5", "x"], ["a\n", "b"]]
)
@pytest.mark.parametrize("ending", ENDINGS)
def test_awkward_class_names(tmp_path, ending, names):
    write_predictions(
        Predictions(probs=[[0.25, 0.75]], labels=[1], class_names=names), tmp_path / f"a{ending}"
    )
    assert read_predictions(tmp_path / f"a{ending}").class_names == tuple(names)


def test_numpy_reads_our_archives(tmp_path):
    write_predictions(Predictions(logits=[[1.0, 2.0]], labels=[1], split="test"), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        assert sorted(archive) == ["labels", "logits", "split"]
        assert archive["logits"].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("name", ["a/b", "..", "a\\b", "new\nline", ""])
def test_group_names_that_files_cannot_keep(tmp_path, name):
    with pytest.raises(DataError, match=r"has a name that files cannot keep. Rename it"):
        write_predictions(Predictions(probs=[0.5], labels=[1], groups={name: [1]}), tmp_path / "a.npz")


def test_group_names_that_differ_in_case_only(tmp_path):
    predictions = Predictions(probs=[0.5], labels=[1], groups={"a": [1], "A": [2]})
    with pytest.raises(DataError, match="but for upper case"):
        write_predictions(predictions, tmp_path / "a.csv")


def test_a_fit_too_large_for_a_csv_is_kept_as_a_sketch(tmp_path):
    raw = Predictions(probs=[0.5], labels=[1])
    predictions = raw.with_scores(probs=[0.5], fitted_on=Rows.from_ids(np.arange(20_000)))
    write_predictions(predictions, tmp_path / "a.csv")
    kept = read_predictions(tmp_path / "a.csv").fitted_on
    assert (kept.is_sketch, len(kept.hashes)) == (True, 4096)
    with pytest.raises(SplitError, match=r"of \d+ rows were used to fit"):
        check_disjoint(Rows.from_ids(np.arange(19_000, 30_000)), kept, where="score")
    check_disjoint(Rows.from_ids(np.arange(20_000, 90_000)), kept, where="score")
    write_predictions(predictions, tmp_path / "a.parquet")
    assert read_predictions(tmp_path / "a.parquet").fitted_on.shared(predictions.fitted_on) == 20_000


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("fitted", [Rows.from_ids(range(99)).sketch(40), Rows.from_ids(np.arange(0))])
def test_sketches_and_maps_that_know_no_rows_are_kept(tmp_path, ending, fitted):
    raw = Predictions(probs=[0.5], labels=[1], ids=["a"])
    write_predictions(raw.with_scores(probs=[0.4], fitted_on=fitted), tmp_path / f"a{ending}")
    kept = read_predictions(tmp_path / f"a{ending}").fitted_on
    np.testing.assert_array_equal(kept.hashes, fitted.hashes)
    assert (kept.named, kept.below) == (True, fitted.below)


def test_class_names_too_long_for_a_csv(tmp_path):
    names = [str(number) * 30_000 for number in range(3)]
    with pytest.raises(DataError, match=r"cannot hold 9\d* letters of class names and types\. Write \.npz"):
        write_predictions(
            Predictions(predicted=[0], confidence=[0.5], labels=[0], class_names=names), tmp_path / "a.csv"
        )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/a.npz", "the folder .* does not exist. Make it first"),
        ("a.txt", "the ending must be one of"),
        ("a.npy", "a .npy file holds one array. Pass a pair of paths"),
        ("folder.npz", "is a directory"),
    ],
)
def test_paths_that_lead_nowhere(tmp_path, name, message):
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(DataError, match=message):
        write_predictions(Predictions(probs=[0.5], labels=[1]), tmp_path / name)


@pytest.mark.parametrize("ending", ENDINGS)
def test_leaks_are_caught_after_a_detour_through_files(tmp_path, ending):
    generator = np.random.default_rng(0)
    raw = Predictions(logits=generator.normal(size=(30, 3)).astype(np.float32), labels=np.arange(30) % 3)
    write_predictions(raw.with_scores(logits=raw.logits * 2, fitted_on=raw.rows), tmp_path / f"a{ending}")
    back = read_predictions(tmp_path / f"a{ending}")
    with pytest.raises(SplitError, match="30 of 30 rows were used to fit"):
        check_disjoint(back.rows, back.fitted_on, where="score")
    write_predictions(raw, tmp_path / f"raw{ending}")
    assert read_predictions(tmp_path / f"raw{ending}").rows.shared(back.rows) == 30


PIECES = [
    "",
    "a",
    "b",
    ",",
    ";",
    "\t",
    '"',
    "'",
    "\n",
    "\r",
    "\0",
    " ",
    "=",
    "é",
    "\ufeff",
    "\u2028",
    "\x1b",
    "x" * 200,
]
awkward_texts = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)


@pytest.mark.parametrize("ending", ENDINGS)
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(awkward_texts, min_size=2, max_size=2, unique=True),
    sites=st.lists(awkward_texts, min_size=3, max_size=3),
)
def test_awkward_text_reads_back_equal_or_is_not_written(tmp_path, ending, names, sites):
    path = tmp_path / f"a{ending}"
    path.unlink(missing_ok=True)
    scores, labels = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 0]
    written = Predictions(
        probs=scores,
        labels=labels,
        class_names=names,
        groups={"site": sites},
        ids=[f"{s}{n}" for n, s in enumerate(sites)],
    )
    reason = None
    try:
        write_predictions(written, path)
    except DataError as error:
        reason = str(error)
    if reason is not None:
        assert "\n" not in reason
        assert reason.startswith(f"{path.name}: ")
        assert list(tmp_path.iterdir()) == []
        return
    found = read_predictions(path)
    assert found.class_names == written.class_names
    assert found.groups["site"].tolist() == written.groups["site"].tolist()
    assert found.fingerprint == written.fingerprint
    assert found.rows.hashes.tolist() == written.rows.hashes.tolist()


@pytest.mark.parametrize("ending", ENDINGS)
def test_long_text_is_kept_or_refused_when_it_is_written(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    at_limit = Predictions(probs=[[0.9, 0.1]], labels=[0], groups={"site": ["x" * 256]})
    write_predictions(at_limit, path)
    assert read_predictions(path).groups["site"].tolist() == ["x" * 256]
    longer = Predictions(
        probs=[[0.9, 0.1]], labels=[0], groups={"site": ["x" * 257]}, class_names=["y" * 300, "z"]
    )
    if ending == ".npz":
        write_predictions(longer, path)
        assert read_predictions(path).groups["site"].tolist() == ["x" * 257]
    else:
        with pytest.raises(DataError, match=r"257 characters.*Write \.npz"):
            write_predictions(longer, path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_commas_in_class_and_group_names(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    written = Predictions(
        probs=[[0.9, 0.1]], labels=[0], class_names=["salt, pepper", "a;b"], groups={"one, two": ["x"]}
    )
    write_predictions(written, path)
    found = read_predictions(path)
    assert found.class_names == ("salt, pepper", "a;b")
    assert list(found.groups) == ["one, two"]


def test_texts_that_differ_by_a_final_null_are_not_merged(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"probs": [0.9, 0.1], "labels": [1, 0], "group_site": ["a", "a\0"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("probs,labels,group_site\n0.9,1,a\n0.1,0,a\0\n")
    for name in ("a.parquet", "a.csv"):
        with pytest.raises(DataError, match="null character"):
            read_predictions(tmp_path / name)


def test_a_quoted_delimiter_in_a_header_is_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"prob_a,b";prob_c;labels\n0.9;0.1;0\n')
    assert read_predictions(path).class_names == ("a,b", "c")
