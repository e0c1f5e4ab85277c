"""``equipoise report``: files in, one file out."""

import json

import numpy as np
import pytest

from equipoise.cli import main


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(300, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    site = np.array(["north", "south"])[rng.integers(0, 2, 300)]
    for name, factor in (("sure", 3.0), ("fair", 1.0)):
        np.savez(tmp_path / f"{name}.npz", logits=factor * logits, labels=labels, site=site)
    return tmp_path


@pytest.fixture
def runs(tmp_path):
    """A folder that holds a run which was started."""
    (tmp_path / "runs" / "0123456789abcdef").mkdir(parents=True)
    (tmp_path / "runs" / "0123456789abcdef" / "manifest.json").write_text("{}")
    return tmp_path / "runs"


def test_a_folder_of_parquet_files_is_one_model(files, capsys):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folders = {}
    for name in ("sure", "fair"):
        folders[name] = files / name
        folders[name].mkdir()
        given = np.load(files / f"{name}.npz")
        for part, rows in enumerate((slice(0, 100), slice(100, 300))):
            columns = {f"logit_{k}": given["logits"][rows, k] for k in range(3)}
            pq.write_table(
                pa.table({**columns, "label": given["labels"][rows]}), folders[name] / f"{part}.parquet"
            )
    told = []
    for sources in (folders, {name: files / f"{name}.npz" for name in folders}):
        out = files / "page.md"
        words = ["report", *map(str, sources.values()), "-o", str(out), "--resamples", "50", "--json"]
        assert main(words) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]


def test_one_file_gives_one_page(files, capsys):
    out = files / "page.html"
    arguments = ["report", str(files / "sure.npz"), "-o", str(out), "--by", "site", "--resamples", "50"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "Overconfident" in printed
    assert printed.splitlines()[-1] == str(out)
    page = out.read_text(encoding="utf-8")
    assert "<h3><bdi>By site:" in page
    assert "equipoise report " in page


def test_several_files_are_compared_with_the_baseline(files, capsys):
    out = files / "page.md"
    both = [str(files / "sure.npz"), str(files / "fair.npz")]
    assert main(["report", *both, "-o", str(out), "--resamples", "50", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["methods"] == {"fair": "better"}
    assert main(["report", *both, "-o", str(out), "--resamples", "50", "--baseline", "fair", "-q"]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert "sure is worse calibrated than fair" in out.read_text(encoding="utf-8")


def test_files_of_one_name_are_told_apart_by_their_folders(files, capsys):
    other = files / "other"
    other.mkdir()
    (other / "sure.npz").write_bytes((files / "fair.npz").read_bytes())
    out = files / "page.md"
    arguments = [
        "report",
        str(files / "sure.npz"),
        str(other / "sure.npz"),
        "-o",
        str(out),
        "--resamples",
        "20",
    ]
    assert main([*arguments, "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["methods"]) == [str(other / "sure.npz")]


def test_held_out_predictions_bring_advice(files):
    logits, labels = (np.load(files / "sure.npz")[name] for name in ("logits", "labels"))
    for name, part in (("fit", slice(0, 150)), ("judge", slice(150, 300))):
        np.savez(files / f"{name}.npz", logits=logits[part], labels=labels[part])
    out = files / "page.html"
    words = ["report", str(files / "judge.npz"), "--calib", str(files / "fit.npz"), "-o", str(out)]
    assert main([*words, "--resamples", "50", "-q"]) == 0
    page = out.read_text(encoding="utf-8")
    assert "divide logits by" in page
    assert f"equipoise calibrate {files / 'fit.npz'} --method temperature -o fit-temperature.json" in page
    assert "equipoise apply fit-temperature.json" in page
    assert "--calib" in page


def test_the_model_card_is_written_beside(files):
    card = files / "card.yaml"
    words = ["report", str(files / "sure.npz"), "-o", str(files / "r.html"), "--resamples", "20"]
    assert main([*words, "--card", str(card), "--dataset", "Toys"]) == 0
    assert card.read_text().startswith("model-index:")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{0}/unread.npz", "-o", "{0}/r.pdf"], ".html or .htm or .md"),
        (["{0}"], "no run in"),
        (["{0}/runs"], "no finished run"),
        (["{0}/runs", "{0}/sure.npz"], "sure.npz does not"),
        (["{0}/sure.npz", "{0}/sure.npz"], "given once"),
        (["{0}/sure.npz", "--baseline", "nobody", "-o", "{0}/r.html"], "baseline must be one of"),
        (["{0}/sure.npz", "--by", "sight", "-o", "{0}/r.html"], "sight"),
        (["{0}/sure.npz", "--card", "{0}/c.yaml"], "--dataset"),
        (["{0}/sure.npz", "{0}/fair.npz", "--calib", "{0}/fair.npz"], "once per file"),
        (["{0}/sure.npz", "-o", "{0}/no/such/folder/r.html"], "no/such/folder"),
    ],
)
def test_mistakes_exit_2_with_a_sentence_and_leave_nothing(arguments, sentence, files, runs, capsys):
    before = sorted(files.iterdir())
    quick = [] if "{0}/runs" in arguments else ["--resamples", "20"]  # a folder of runs is scored already
    assert main(["report", *(word.format(files) for word in arguments), *quick]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error
    assert sorted(files.iterdir()) == before


def test_files_go_by_the_names_given(files, capsys):
    out = files / "page.md"
    words = ["report", str(files / "sure.npz"), str(files / "fair.npz"), "-o", str(out), "--resamples", "20"]
    assert (
        main([*words, "--name", "Old model", "--name", "New model", "--baseline", "New model", "--json"]) == 0
    )
    assert list(json.loads(capsys.readouterr().out)["methods"]) == ["Old model"]
    assert main([*words, "--name", "only one"]) == 2
    assert "once per file, 2 times, got 1" in capsys.readouterr().err
    assert main([*words, "--name", "a", "--name", "a"]) == 2
    assert "names must be distinct" in capsys.readouterr().err


def test_the_command_that_makes_it_again_holds_every_option(files):
    out = files / "page.html"
    words = [
        "report",
        str(files / "sure.npz"),
        "-o",
        str(out),
        "--resamples",
        "20",
        "--bins",
        "7",
        "--name",
        "A b",
    ]
    assert main([*words, "-q"]) == 0
    page = out.read_text(encoding="utf-8")
    again = "--output " + str(out) + " --name &#x27;A b&#x27; --bins 7 --resamples 20"
    assert again in page.replace("&#39;", "&#x27;")


def test_options_that_run_folders_do_not_heed_are_refused(runs, capsys):
    assert main(["report", str(runs), "--by", "site"]) == 2
    assert "--by is for files of predictions" in capsys.readouterr().err


def test_one_file_is_divided_and_shown_before_and_after(files, capsys):
    out = files / "page.html"
    both = [str(files / "sure.npz"), str(files / "fair.npz")]
    share = ["--calib-share", "0.4", "--seed", "3", "--resamples", "50", "-o", str(out)]
    assert main(["report", both[0], *share]) == 0
    page = out.read_text(encoding="utf-8")
    assert "180 rows" in page
    assert "without the rows to fit on (seed 3)" in page
    assert "After temperature" in page
    assert "--holdout 0.6 --seed 3 --method " in page
    assert f"equipoise apply sure-temperature.json {both[0]} -o sure-calibrated.npz" in page
    assert main(["report", *both, *share]) == 0
    capsys.readouterr()
    assert main(["report", both[0], *share, "--calib", both[1]]) == 2
    assert "exclude each other" in capsys.readouterr().err
