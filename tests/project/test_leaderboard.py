"""The leaderboard: rows follow from the files, and submissions are checked and scored."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.calibrators import TemperatureScaling
from equipoise.experiments.runs.rows import read_rows, write_rows
from equipoise.metrics import negative_log_likelihood

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence"
SPLITS = {"tune": (0, 300), "calib": (300, 600), "test": (600, 1800)}
N_SEEDS = 4
MODULES = ("tidy", "pairs", "differences", "collect", "acting", "run", "submissions", "leaderboard")


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(EVIDENCE))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import leaderboard
    import submissions

    return leaderboard, submissions


def predictions(seed, *, noise):
    """Predictions of one training: the log-odds of the classes with the noise of a seed."""
    rng = np.random.default_rng(0)
    truth = 1.5 * rng.normal(size=(1800, 3))
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    logits = 2 * (truth + np.random.default_rng(seed + 1).normal(0, noise, truth.shape))
    return {
        split: Predictions(
            logits=logits[low:high], labels=labels[low:high], ids=np.arange(low, high), split=split
        )
        for split, (low, high) in SPLITS.items()
    }


MADE = []


def baseline(in_order, reference_of, acting):
    """Give the reference and the scores of cross-entropy, which all tests share."""
    if not MADE:
        base = {
            seed: {split: in_order(rows) for split, rows in predictions(seed, noise=0.8).items()}
            for seed in range(N_SEEDS)
        }
        about = {"benchmark": "e2", "method": "ce"}
        rows = [
            row
            for seed, found in base.items()
            for row in acting.endpoint_rows({**about, "seed": seed}, found)
        ]
        MADE.extend((reference_of("e2", base), rows))
    return MADE


@pytest.fixture
def board(scripts, tmp_path, monkeypatch):
    """Give the command in a folder with a benchmark of its own, whose cross-entropy is noisy."""
    leaderboard, submissions = scripts
    for module in (leaderboard, submissions, sys.modules["tidy"], sys.modules["differences"]):
        monkeypatch.setattr(module, "HERE", tmp_path)
    reference, rows = baseline(submissions.in_order, submissions.reference_of, sys.modules["acting"])
    file = tmp_path / "leaderboard" / "reference" / "e2.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(reference))
    write_rows(tmp_path / "second" / "e2" / "scores.csv", rows)
    about = {"benchmark": "e2", "method": "ce"}
    runs = [
        {**about, "seed": seed, "run": f"r{seed}", "epochs": 4, "epoch_cpu_seconds": 0.5}
        for seed in range(N_SEEDS)
    ]
    write_rows(tmp_path / "second" / "e2" / "runs.csv", runs)

    def add(folder, method="mine", link="https://example.org/mine"):
        words = ["--name", "A. Author", "--link", link, "--command", "python train.py", "--cost", "1.5"]
        return leaderboard.main(["add", "e2", method, str(folder), *words])

    return add


@pytest.fixture
def folder(tmp_path):
    """Give the predictions of a method with less noise, as somebody else would hand them in."""
    made = tmp_path / "mine"
    for seed in range(N_SEEDS):
        for split, rows in predictions(seed, noise=0.2).items():
            save(made / str(seed) / f"{split}.csv", rows)
    return made


def save(file, rows, *, order=None):
    file.parent.mkdir(parents=True, exist_ok=True)
    ids = np.arange(*SPLITS[file.stem])
    order = np.arange(len(rows)) if order is None else order
    table = {f"p_{k}": rows.probs[order, k] for k in range(3)}
    write_rows(file, table_rows({**table, "label": rows.labels[order], "id": ids[order]}))


def table_rows(columns):
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def change(file, edit):
    rows = read_rows(file)
    edit(rows)
    write_rows(file, rows)


def test_a_submission_is_scored_here_and_gets_a_row(board, folder, tmp_path, capsys):
    assert board(folder) == 0
    found = {row["method"]: row for row in read_rows(tmp_path / "leaderboard" / "board.csv")}
    assert set(found) == {"ce", "mine"}
    row = found["mine"]
    values = []
    for seed in range(N_SEEDS):
        rows = predictions(seed, noise=0.2)
        values.append(negative_log_likelihood(TemperatureScaling().fit(rows["calib"])(rows["test"])))
    assert row["nll"] == pytest.approx(np.mean(values), rel=1e-4)
    assert row["difference"] == pytest.approx(row["nll"] - found["ce"]["nll"], abs=1e-5)
    assert (row["conclusion"], row["test"], row["n_seeds"], row["n_rows"]) == ("better", "better", 4, 1200)
    assert (row["submitted_by"], row["link"], row["cost"]) == ("A. Author", "https://example.org/mine", 1.5)
    assert row["command"] == "python train.py"
    assert 0 < row["set_size_90"] <= 3
    assert row["low"] < row["low_90"] < row["difference"] < row["high_90"] < row["high"] < 0


def test_the_order_of_rows_does_not_matter(board, folder, tmp_path):
    assert board(folder) == 0
    for seed in range(N_SEEDS):
        for split, rows in predictions(seed, noise=0.2).items():
            order = np.random.default_rng(seed).permutation(len(rows))
            save(tmp_path / "other" / str(seed) / f"{split}.csv", rows, order=order)
    assert board(tmp_path / "other", method="other") == 0
    found = {row["method"]: row for row in read_rows(tmp_path / "leaderboard" / "board.csv")}
    for key in ("nll", "difference", "low", "high", "ece", "set_size_90"):
        assert found["other"][key] == pytest.approx(found["mine"][key], rel=1e-5)


def test_cross_entropy_submitted_again_does_not_differ(board, tmp_path):
    for seed in range(N_SEEDS):
        for split, rows in predictions(seed, noise=0.8).items():
            save(tmp_path / "again" / str(seed) / f"{split}.csv", rows)
    assert board(tmp_path / "again", method="again") == 0
    row = next(row for row in read_rows(tmp_path / "leaderboard" / "board.csv") if row["method"] == "again")
    assert row["difference"] == pytest.approx(0, abs=1e-5)
    assert (row["test"], row["conclusion"]) == ("tie", "equivalent")


def drop_seed(folder):
    for file in (folder / "3").iterdir():
        file.unlink()
    (folder / "3").rmdir()


def other_label(folder):
    change(folder / "1" / "test.csv", lambda rows: rows[7].update(label=(rows[7]["label"] + 1) % 3))


def calib_in_test(folder):
    change(folder / "2" / "test.csv", lambda rows: rows[0].update(id=350))


def other_rows(folder):
    change(folder / "0" / "test.csv", lambda rows: rows[0].update(id=5000))


def fewer_rows(folder):
    change(folder / "0" / "calib.csv", lambda rows: rows.pop())


def no_distribution(folder):
    change(folder / "0" / "test.csv", lambda rows: rows[0].update(p_0=-0.4, p_1=0.9, p_2=0.5))


def no_ids(folder):
    change(folder / "0" / "test.csv", lambda rows: [row.pop("id") for row in rows])


def no_tune(folder):
    (folder / "0" / "tune.csv").unlink()


def copied_seed(folder):
    for split in SPLITS:
        (folder / "2" / f"{split}.csv").write_text((folder / "1" / f"{split}.csv").read_text())


def two_classes(folder):
    def edit(rows):
        for row in rows:
            row["p_1"] += row.pop("p_2")

    change(folder / "0" / "tune.csv", lambda rows: [row.update(label=min(row["label"], 1)) for row in rows])
    change(folder / "0" / "tune.csv", edit)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (drop_seed, "expected 4 folders, named 0 to 3, one per seed; got 3"),
        (other_label, "1/test: the labels are not those of e2"),
        (calib_in_test, "1 of 1200 rows of test are rows of calib too"),
        (other_rows, "0/test: the row ids are not those of e2"),
        (fewer_rows, "0/calib: the number of rows are not those of e2 (299 rows, expected 300)"),
        (no_distribution, "seed 0: test.csv: `probs` must lie in [0, 1]"),
        (no_ids, "'id'"),
        (no_tune, "expected one file tune"),
        (copied_seed, "seeds 1 and 2 have the same predictions"),
        (two_classes, "expected probabilities or logits of 3 classes"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_wrong_submission_is_one_line_and_adds_nothing(board, folder, tmp_path, capsys, spoil, message):
    spoil(folder)
    assert board(folder) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "leaderboard" / "submissions").exists()


def test_names_and_links_are_checked(board, folder, capsys):
    assert board(folder, method="ce") == 2
    assert board(folder, method="../ce") == 2
    assert board(folder, link="ftp") == 2
    assert board(folder / "nowhere") == 2
    assert board(folder) == 0
    assert board(folder) == 2
    assert capsys.readouterr().err.count("\n") == 5


def test_splits_are_the_rows_of_the_benchmark(scripts, tmp_path, monkeypatch, capsys):
    leaderboard, submissions = scripts
    monkeypatch.chdir(tmp_path)
    assert leaderboard.main(["splits", "e2", "--data", str(tmp_path), "-o", "rows.npz"]) == 0
    with np.load(tmp_path / "rows.npz") as stored:
        found = dict(stored)
    assert {split: len(found[f"y_{split}"]) for split in ("train", "tune", "calib", "test")} == {
        "train": 600, "tune": 1000, "calib": 1000, "test": 10_000,
    }  # fmt: skip
    assert found["x_train"].shape == (600, 8)
    assert len(np.unique(np.concatenate([found[f"id_{split}"] for split in SPLITS]))) == 12_000
    assert leaderboard.main(["splits", "e2", "--data", str(tmp_path / "no"), "-o", "rows.npz"]) == 2
    assert leaderboard.main(["splits", "e2", "-o", "rows.csv"]) == 2
    for file in (EVIDENCE / "leaderboard" / "reference").glob("e2.json"):
        wanted = json.loads(file.read_text())["splits"]
        for split in SPLITS:
            rows = Predictions(
                probs=np.full((len(found[f"y_{split}"]), 4), 0.25),
                labels=found[f"y_{split}"],
                ids=found[f"id_{split}"],
            )
            assert submissions.row_digests(submissions.in_order(rows)) == wanted[split]


def test_the_committed_board_follows_from_the_files(scripts):
    leaderboard, _ = scripts
    found, committed = list(leaderboard.board()), leaderboard.read(leaderboard.FILE)
    assert [(row["benchmark"], row["method"]) for row in found] == [
        (row["benchmark"], row["method"]) for row in committed
    ]
    for row, line in zip(found, committed, strict=True):
        numbers = [key for key, value in row.items() if isinstance(value, float)]
        assert [row[key] for key in numbers] == pytest.approx([line[key] for key in numbers], rel=1e-5)
        assert [row[key] for key in ("conclusion", "command")] == [
            line[key] for key in ("conclusion", "command")
        ]


def test_methods_that_were_not_paired_get_the_row_error_of_independent_samples(scripts):
    leaderboard, _ = scripts
    fixed = {"calibrator": "temperature", "split": "test", "metric": "nll", "seed": 0}
    base = {**fixed, "method": "ce", "value": 0.5, "low": 0.47, "high": 0.53}
    other = {**fixed, "method": "trees", "value": 0.4, "low": 0.36, "high": 0.44}
    [row] = leaderboard.unpaired([base], [other])
    assert (row["low"], row["high"]) == pytest.approx((-0.15, -0.05))
    assert (row["value"], row["versus_value"], row["method"]) == (0.4, 0.5, "trees")
