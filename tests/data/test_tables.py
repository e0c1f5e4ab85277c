"""Any .npz, CSV or Parquet file."""

import numpy as np
import pytest
import torch

from equipoise.core.errors import DataError
from equipoise.data import batches, load

FEATURES = np.random.default_rng(0).normal(3.0, 2.0, (40, 3))
LABELS = np.arange(40) % 4


def test_npz_of_features_is_standardized_on_training_rows(tmp_path):
    np.savez(tmp_path / "a.npz", x=FEATURES, y=LABELS)
    data = load("npz", options={"path": tmp_path / "a.npz"})
    assert data.name == "a"
    train = torch.cat([batch.inputs for batch in batches(data, "train", batch_size=8)])
    torch.testing.assert_close(train.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(train.std(0, correction=0), torch.ones(3), atol=1e-5, rtol=0)
    assert load("npz", options={"path": tmp_path / "a.npz", "standardize": False}).mean is None


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_npz_of_images(tmp_path, layout):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 3, 5, 6), dtype=np.uint8)
    stored = pixels if layout == "nchw" else pixels.transpose(0, 2, 3, 1)
    np.savez(tmp_path / "a.npz", x=stored, y=LABELS)
    data = load("npz", options={"path": tmp_path / "a.npz", "layout": layout})
    assert np.array_equal(data.inputs.numpy(), pixels)


def test_npz_of_gray_images_with_a_test_set(tmp_path):
    pixels = np.zeros((40, 5, 6), np.uint8)
    np.savez(
        tmp_path / "a.npz", x_train=pixels[:30], y_train=LABELS[:30], x_test=pixels[30:], y_test=LABELS[30:]
    )
    data = load("npz", options={"path": tmp_path / "a.npz"})
    assert data.rows("test").tolist() == list(range(30, 40))
    assert [len(data.rows(split)) for split in ("train", "tune", "calib")] == [24, 3, 3]
    assert tuple(data.inputs.shape) == (40, 1, 5, 6)


@pytest.mark.parametrize(
    "arrays",
    [
        {"a": FEATURES},
        {"x": FEATURES, "y": LABELS[:39]},
        {"x": FEATURES[:, :, None], "y": LABELS},
        {"x": np.full((40, 2), np.nan), "y": LABELS},
        {"x": np.array([{}], dtype=object), "y": LABELS},
    ],
)
def test_npz_that_does_not_fit_is_refused(tmp_path, arrays):
    np.savez(tmp_path / "mine.npz", **arrays)
    with pytest.raises(DataError, match="mine"):
        load("npz", options={"path": tmp_path / "mine.npz"})


def test_labels_that_are_no_whole_numbers_are_refused(tmp_path):
    np.savez(tmp_path / "mine.npz", x=FEATURES, y=LABELS + 0.5)
    with pytest.raises(DataError, match="whole numbers"):
        load("npz", options={"path": tmp_path / "mine.npz"})


def test_a_file_that_is_no_npz_is_named(tmp_path):
    np.save(tmp_path / "mine.npy", FEATURES)
    (tmp_path / "mine.npy").rename(tmp_path / "mine.npz")
    with pytest.raises(DataError, match=r"mine\.npz"):
        load("npz", options={"path": tmp_path / "mine.npz"})
    with pytest.raises(DataError, match="does not exist"):
        load("npz", options={"path": tmp_path / "gone.npz"})


def write_csv(path, words=("no", "yes")):
    rows = [f"{a},{words[k % len(words)]},{b}" for k, (a, b, _) in enumerate(FEATURES.tolist())]
    path.write_text("first,answer,second\n" + "\n".join(rows) + "\n")
    return path


def test_csv_with_words(tmp_path):
    data = load(
        "table", options={"path": write_csv(tmp_path / "t.csv"), "label": "answer", "standardize": False}
    )
    assert data.class_names == ("no", "yes")
    assert data.labels.tolist() == [0, 1] * 20
    np.testing.assert_allclose(data.inputs.numpy(), FEATURES[:, :2].astype(np.float32))


def test_csv_and_parquet_agree(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"first": FEATURES[:, 0], "answer": ["no", "yes"] * 20, "second": FEATURES[:, 1]}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    one = load("table", options={"path": write_csv(tmp_path / "t.csv"), "label": "answer"})
    two = load("table", options={"path": tmp_path / "t.parquet", "label": "answer"})
    assert one.fingerprints == two.fingerprints
    assert one.class_names == two.class_names


def test_numeric_labels_of_parquet_keep_their_order(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"x": FEATURES[:, 0], "label": [2, 10] * 20}), tmp_path / "t.parquet")
    assert load("table", options={"path": tmp_path / "t.parquet"}).class_names == ("2", "10")


def test_a_missing_column_gives_the_nearest(tmp_path):
    with pytest.raises(DataError, match="Did you mean 'answer'"):
        load("table", options={"path": write_csv(tmp_path / "t.csv"), "label": "anser"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,label\n1,x\n2\n", "line 3"),
        ("a,label\n1,x\nhello,y\n", "row 2"),
        ("a,label\n1,x\nnan,y\n", "row 2"),
        ("a,a\n1,2\n", "different name"),
        ("", "different name"),
        ("label\nx\n", "one column beside"),
        ("a,label\n", "at least one row"),
    ],
)
def test_a_damaged_csv_names_the_place(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        load("table", options={"path": tmp_path / "t.csv"})


def test_a_damaged_parquet_is_named(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"t\.parquet"):
        load("table", options={"path": tmp_path / "t.parquet"})


def test_other_endings_are_refused(tmp_path):
    (tmp_path / "t.xlsx").write_text("x")
    with pytest.raises(DataError, match="Rename or convert"):
        load("table", options={"path": tmp_path / "t.xlsx"})
