"""`equipoise apply` keeps the user's table: other columns, order, names, types, and the check for leaked rows."""

import datetime
import json

import numpy as np
import pytest
import torch

from equipoise import Predictions, read_predictions, write_predictions
from equipoise.calibrators import HistogramBinning, PlattScaling, TemperatureScaling, load
from equipoise.calibrators.files import calibrate_file
from equipoise.core.errors import DataError, SplitError
from equipoise.evaluate import score
from helpers.command_line import run

ENDINGS = [".csv", ".tsv", ".parquet", ".npz", ".safetensors"]


def rows(seed, n=400):
    generator = np.random.default_rng(seed)
    logits = 2 * generator.normal(size=(n, 3))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    return Predictions(logits=2.5 * logits, labels=labels)


@pytest.fixture
def fitted(tmp_path):
    path = tmp_path / "map.json"
    TemperatureScaling().fit(rows(0)).save(path)
    return path


def user_table(found, *, end="\n"):
    """A CSV file as people have it: ids, dates, quoted text and other scores between the columns that are read."""
    lines = ["id,day,p_cat,note,p_dog,p_cow,label,score"]
    names = ("cat", "dog", "cow")
    for row, (probs, label) in enumerate(zip(found.probs, found.labels, strict=True)):
        cat, dog, cow = (repr(float(value)) for value in probs)
        note = ['"a, ""b"""', '"plain"', "", "caf\u00e9"][row % 4]
        lines.append(f"{row:05d},2026-03-{row % 28 + 1:02d},{cat},{note},{dog},{cow},{names[label]},1.50")
    return end.join(lines) + end


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_csv_file_keeps_every_cell_but_the_scores(fitted, tmp_path, capsys, end):
    raw = tmp_path / "production.csv"
    raw.write_bytes(("\ufeff" + user_table(rows(1), end=end)).encode())
    assert run(capsys, "apply", fitted, raw)[0] == 0
    made = tmp_path / "production.calibrated.csv"
    before, after = raw.read_bytes().decode().split(end), made.read_bytes().decode().split(end)
    assert after[0] == before[0]
    assert len(after) == len(before)
    expected = load(fitted)(rows(1)).probs
    for row, (one, two) in enumerate(zip(before[1:-1], after[1:-1], strict=True)):
        numbers = [float(two.rsplit(",", 5)[place]) for place in (2, 3)]
        np.testing.assert_allclose(numbers, expected[row, 1:], atol=1e-12)
        assert two.split(",")[:2] == one.split(",")[:2]
        assert two.rsplit(",", 2)[1:] == one.rsplit(",", 2)[1:]
        assert two.split(",", 3)[3].rsplit(",", 4)[0] == one.split(",", 3)[3].rsplit(",", 4)[0]
    found = read_predictions(made)
    assert (found.kind, found.class_names) == ("probs", ("cat", "dog", "cow"))
    np.testing.assert_allclose(found.probs, expected, atol=1e-12)
    notes = json.loads((tmp_path / "production.calibrated.csv.equipoise.json").read_text())
    assert notes["calibrator"].startswith("temperature: ")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", [TemperatureScaling, HistogramBinning])
@pytest.mark.parametrize("ids", [False, True])
def test_rows_of_the_fit_are_refused_after_a_detour_over_any_format(ending, kind, ids, tmp_path):
    raw, made = tmp_path / f"raw{ending}", tmp_path / f"made{ending}"
    found = rows(0)
    table = {"logits": found.logits, "labels": found.labels, "number": np.arange(len(found))}
    np.savez(tmp_path / "raw.npz", **table)
    if ending != ".npz":
        calibrate_file(
            TemperatureScaling().fit([[3.0, 0.0, 0.0]] * 4, [0, 0, 0, 1]), tmp_path / "raw.npz", raw
        )
        side = raw.with_name(f"{raw.name}.equipoise.json")
        side.unlink(missing_ok=True)
    named = {"ids": "number"} if ids else {}
    fitted = kind().fit(read_predictions(raw, **named))
    calibrate_file(fitted, raw, made, force=True, **named)
    with pytest.raises(SplitError, match="400 of 400 rows were used to fit"):
        score(read_predictions(made), n_resamples=5)


def test_disjoint_rows_are_scored_and_need_no_row_hashes(fitted, tmp_path):
    (tmp_path / "a.csv").write_text(user_table(rows(1)))
    made = calibrate_file(load(fitted), tmp_path / "a.csv", tmp_path / "b.csv")
    assert "rows" not in json.loads(made.notes.read_text())
    assert score(read_predictions(tmp_path / "b.csv"), n_resamples=5).n_samples == 400


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_second_calibrator_is_refused(ending, fitted, tmp_path, capsys):
    write_predictions(rows(1), tmp_path / f"a{ending}")
    assert run(capsys, "apply", fitted, tmp_path / f"a{ending}")[0] == 0
    code, _, error = run(capsys, "apply", fitted, tmp_path / f"a.calibrated{ending}")
    assert (code, "applied to these predictions already" in error, "--force" in error) == (2, True, True)


def test_scores_become_logits_under_another_name(fitted, tmp_path, capsys):
    (tmp_path / "a.csv").write_text(user_table(rows(1)))
    out = tmp_path / "b.csv"
    code, printed, _ = run(capsys, "apply", fitted, tmp_path / "a.csv", "-o", out, "--as", "logits", "--json")
    assert code == 0
    assert json.loads(printed)["columns"] == ["logit_cat", "logit_dog", "logit_cow"]
    assert out.read_text().splitlines()[0] == "id,day,logit_cat,note,logit_dog,logit_cow,label,score"
    found = read_predictions(out)
    assert found.kind == "logits"
    np.testing.assert_allclose(found.probs, load(fitted)(rows(1)).probs, atol=1e-9)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
def test_calibrated_columns_stand_beside_the_raw_ones(ending, fitted, tmp_path, capsys):
    (tmp_path / "a.csv").write_text(user_table(rows(1)))
    out = tmp_path / f"b{ending}"
    assert run(capsys, "apply", fitted, tmp_path / "a.csv", "-o", out, "--suffix", "_new")[0] == 0
    with pytest.raises(DataError, match="before and after a calibrator; 'p_cat_new'"):
        read_predictions(out)
    before, after = read_predictions(out, probs="p_*"), read_predictions(out, probs="*_new")
    assert before.fitted_on is None
    assert after.fitted_on is not None
    assert before.class_names == after.class_names == ("cat", "dog", "cow")
    np.testing.assert_allclose(before.probs, rows(1).probs, atol=1e-12)
    np.testing.assert_allclose(after.probs, load(fitted)(rows(1)).probs, atol=1e-12)
    if ending == ".csv":
        header = out.read_text().splitlines()[0]
        assert header == "id,day,p_cat,note,p_dog,p_cow,label,score,p_cat_new,p_dog_new,p_cow_new"


def test_a_name_that_is_taken_is_an_error(fitted, tmp_path, capsys):
    (tmp_path / "a.csv").write_text("p_0,p_1,p_2,p_0_new\n0.2,0.3,0.5,x\n")
    words = ("apply", fitted, tmp_path / "a.csv", "--probs", "p_0,p_1,p_2", "--suffix", "_new")
    code, _, error = run(capsys, *words)
    assert (code, "has a column 'p_0_new' already" in error) == (2, True)
    assert not (tmp_path / "a.calibrated.csv").exists()


def test_parquet_keeps_types_and_metadata(fitted, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    found, n = rows(1), 400
    days = [datetime.date(2026, 3, 1 + row % 28) for row in range(n)]
    table = arrow.table(
        {
            "day": arrow.array(days),
            "scores": arrow.array(found.logits.astype(np.float32).tolist(), arrow.list_(arrow.float32(), 3)),
            "site": arrow.array(["a", None] * (n // 2)).dictionary_encode(),
            "tags": arrow.array([["x"], []] * (n // 2)),
            "label": arrow.array(found.labels.astype(np.int8)),
        },
        metadata={b"owner": b"me"},
    )
    parquet.write_table(table, tmp_path / "a.parquet", compression="zstd", row_group_size=150)
    calibrate_file(load(fitted), tmp_path / "a.parquet", tmp_path / "b.parquet", logits="scores")
    made = parquet.read_table(tmp_path / "b.parquet")
    assert made.schema.types == parquet.read_table(tmp_path / "a.parquet").schema.types
    assert made.schema.metadata[b"owner"] == b"me"
    for name in ("day", "site", "tags", "label"):
        assert made[name].to_pylist() == table[name].to_pylist()
    expected = load(fitted)(rows(1)).logits
    np.testing.assert_allclose(np.array(made["scores"].to_pylist()), expected, atol=1e-5)


def test_an_archive_keeps_its_other_arrays_unread(fitted, tmp_path):
    found = rows(1)
    others = {
        "when": np.arange(400).astype("datetime64[D]"),
        "config": np.array({"a": 1}, dtype=object),
        "grid": np.eye(2, dtype=np.float16),
    }
    np.savez(tmp_path / "a.npz", logits=found.logits.astype(np.float32), y=found.labels, **others)
    calibrate_file(load(fitted), tmp_path / "a.npz", tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz", allow_pickle=True) as made:
        assert made["logits"].dtype == np.float32
        assert made["config"].item() == {"a": 1}
        for name in ("when", "grid"):
            assert made[name].dtype == others[name].dtype
            np.testing.assert_array_equal(made[name], others[name])


def test_dense_outputs_keep_their_shape(fitted, tmp_path):
    logits = np.random.default_rng(0).normal(size=(6, 3, 4, 5))
    labels = logits.argmax(1)
    np.savez(tmp_path / "a.npz", logits=logits, labels=labels)
    calibrate_file(load(fitted), tmp_path / "a.npz", tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz") as made:
        temperature = float(load(fitted).result.parameters["temperature"])
        np.testing.assert_allclose(made["logits"], logits / temperature)
    own = TemperatureScaling().fit(read_predictions(tmp_path / "a.npz"))
    calibrate_file(own, tmp_path / "a.npz", tmp_path / "c.npz")
    with pytest.raises(SplitError, match="120 of 120 rows"):
        score(read_predictions(tmp_path / "c.npz"), n_resamples=5)


def test_tensors_keep_their_types(fitted, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    found = rows(1)
    tensors = {
        "logits": torch.from_numpy(found.logits.copy()).bfloat16(),
        "labels": torch.from_numpy(found.labels.copy()),
        "extra": torch.arange(5, dtype=torch.uint8),
    }
    safetensors.save_file(tensors, tmp_path / "a.safetensors", metadata={"owner": "me"})
    calibrate_file(load(fitted), tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    made = safetensors.load_file(tmp_path / "b.safetensors")
    assert made["logits"].dtype == torch.bfloat16
    assert torch.equal(made["extra"], tensors["extra"])
    expected = load(fitted)(tensors["logits"].double())
    torch.testing.assert_close(made["logits"].double(), expected, rtol=1e-2, atol=1e-2)


def test_a_top1_file_without_labels_gets_other_confidences(tmp_path, capsys):
    known = Predictions(predicted=[1, 0] * 50, confidence=np.linspace(0.5, 1, 100), labels=[1, 1] * 50)
    PlattScaling().fit(known).save(tmp_path / "map.json")
    (tmp_path / "a.csv").write_text("question,answer,confidence\n" + 'why?,7,0.9\n"who, me?",3,0.6\n')
    words = ("apply", tmp_path / "map.json", tmp_path / "a.csv", "--predicted", "answer")
    assert run(capsys, *words)[0] == 0
    lines = (tmp_path / "a.calibrated.csv").read_text().splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines] == ["question,answer", "why?,7", '"who, me?",3']
    raw = Predictions(predicted=[7, 3], confidence=[0.9, 0.6])
    found = [float(line.rsplit(",", 1)[1]) for line in lines[1:]]
    np.testing.assert_allclose(found, load(tmp_path / "map.json")(raw).confidence)


def test_a_table_that_lost_rows_is_an_error_where_the_notes_matter(tmp_path):
    (tmp_path / "a.csv").write_text(user_table(rows(0)))
    fitted = TemperatureScaling().fit(read_predictions(tmp_path / "a.csv"))
    calibrate_file(fitted, tmp_path / "a.csv", tmp_path / "b.csv")
    lines = (tmp_path / "b.csv").read_text().splitlines(keepends=True)
    (tmp_path / "b.csv").write_text("".join(lines[:-1]))
    with pytest.raises(DataError, match="rows were added or removed"):
        read_predictions(tmp_path / "b.csv")
    (tmp_path / "b.csv").write_text("".join([*lines, lines[1]]))
    with pytest.raises(DataError, match="rows were added or removed"):
        read_predictions(tmp_path / "b.csv")
    (tmp_path / "b.csv").write_text("label,confidence,predicted\ncat,0.5,cat\n")
    with pytest.raises(DataError, match=r"b\.csv\.equipoise\.json: belongs to a table with a column 'p_cat'"):
        read_predictions(tmp_path / "b.csv")
    write_predictions(rows(1), tmp_path / "b.csv")
    assert read_predictions(tmp_path / "b.csv").fitted_on is None


def test_ignored_rows_are_calibrated_and_still_ignored_afterwards(tmp_path):
    found = rows(0)
    labels = np.where(np.arange(400) % 4 == 0, -100, found.labels)
    np.savez(tmp_path / "a.npz", logits=found.logits, labels=labels)
    fitted = TemperatureScaling().fit(read_predictions(tmp_path / "a.npz", ignore_index=-100))
    calibrate_file(fitted, tmp_path / "a.npz", tmp_path / "b.npz", ignore_index=-100)
    with np.load(tmp_path / "b.npz") as made:
        np.testing.assert_allclose(made["logits"], fitted(found).logits)
    with pytest.raises(SplitError, match="300 of 300 rows"):
        score(read_predictions(tmp_path / "b.npz", ignore_index=-100), n_resamples=5)


def test_several_files_become_one(fitted, tmp_path, capsys):
    for number in (1, 2):
        (tmp_path / f"part-{number}.csv").write_text(user_table(rows(number, n=50)))
    out = tmp_path / "all.csv"
    assert run(capsys, "apply", fitted, tmp_path / "part-*.csv", "-o", out)[0] == 0
    lines = out.read_text().splitlines()
    assert len(lines) == 101
    assert lines[51].startswith("00000,")
    expected = np.concatenate([load(fitted)(rows(number, n=50)).probs for number in (1, 2)])
    np.testing.assert_allclose(read_predictions(out).probs, expected, atol=1e-12)


def test_another_format_keeps_the_columns(fitted, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    (tmp_path / "a.csv").write_text(user_table(rows(1)))
    calibrate_file(load(fitted), tmp_path / "a.csv", tmp_path / "b.parquet")
    frame = pandas.read_parquet(tmp_path / "b.parquet")
    assert list(frame) == ["id", "day", "p_cat", "note", "p_dog", "p_cow", "label", "score"]
    assert frame["id"].tolist()[:2] == ["00000", "00001"]
    assert frame["score"].dtype == np.float64
    np.testing.assert_allclose(frame[["p_cat", "p_dog", "p_cow"]], load(fitted)(rows(1)).probs, atol=1e-12)


def test_a_large_table_is_read_in_chunks(fitted, tmp_path, monkeypatch):
    from equipoise.core.reading.formats import base, csv

    (tmp_path / "a.csv").write_text(user_table(rows(1)))
    calibrate_file(load(fitted), tmp_path / "a.csv", tmp_path / "whole.csv")
    monkeypatch.setattr(base, "_ROWS", 7)
    monkeypatch.setattr(csv, "MOST_CELLS", 40)
    calibrate_file(load(fitted), tmp_path / "a.csv", tmp_path / "parts.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_folder_of_partitions_becomes_one_table(fitted, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for site in ("a", "b"):
        folder = tmp_path / "rows" / f"site={site}"
        folder.mkdir(parents=True)
        found = rows(1, n=20)
        columns = {f"p_{place}": found.probs[:, place] for place in range(3)}
        days = [datetime.date(2026, 3, 1)] * 20
        parquet.write_table(arrow.table({"day": days, **columns}), folder / "part.parquet")
    calibrate_file(load(fitted), tmp_path / "rows", tmp_path / "all.parquet")
    made = parquet.read_table(tmp_path / "all.parquet")
    assert made.column_names == ["day", "p_0", "p_1", "p_2", "site"]
    assert made["site"].to_pylist() == ["a"] * 20 + ["b"] * 20
    np.testing.assert_allclose(made["p_0"].to_numpy()[20:], load(fitted)(rows(1, n=20)).probs[:, 0])
