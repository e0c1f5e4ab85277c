"""Evidence: pages say what the files say, specs can be read, and a cell that is repeated gives what was committed."""

import dataclasses
import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

from equipoise import Predictions, score
from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import DataError
from equipoise.data import from_arrays
from equipoise.experiments import read_comparison, run
from equipoise.experiments.runs.rows import read_rows
from equipoise.experiments.tuning.samplers import first_settings
from helpers.tiny_runs import quick_options

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "evidence"
RUN = sorted(folder.parent.name for folder in EVIDENCE.glob("*/runs.csv"))
PAIRED = sorted(
    str(file.parent.relative_to(EVIDENCE))
    for pattern in ("*/paired.csv", "second/*/paired.csv")
    for file in EVIDENCE.glob(pattern)
)
CLAIMS = tomllib.loads((EVIDENCE / "claims.toml").read_text("utf-8"))["claim"]


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(str(EVIDENCE))
    names = [name for name in sys.modules if name == "pages" or name.startswith("pages.")]
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    from pages import write

    return write


@pytest.mark.parametrize("name", ["index", "losses", "calibrators", "shift", "defaults"])
def test_pages_say_what_the_files_say(pages, name):
    text = getattr(pages, name)()
    assert (pages.HOME / f"{name}.md").read_text("utf-8") == f"{pages.NOTE}\n{text}"


def test_pages_of_the_second_edition_say_what_the_files_say(pages):
    from pages.second import benchmark, data, leaderboard, overview

    texts = {"second": overview.overview(), "leaderboard": leaderboard.page()}
    for name in data.done():
        texts[f"second-{name}"] = benchmark.page(name)
    for name, text in texts.items():
        assert (pages.HOME / f"{name}.md").read_text("utf-8") == f"{pages.NOTE}\n{text}"


def test_the_second_edition_may_have_no_files_yet(pages, monkeypatch):
    from pages.second import data, leaderboard, overview

    monkeypatch.setattr(data, "rows", lambda name: [])
    assert overview.overview().count("not yet run") == len(data.titles())
    assert "No benchmark is complete." in overview.overview()
    text = leaderboard.page()
    assert "Left out until all seeds are there: A2 (not yet run), A′2 (not yet run)" in text
    assert "How to submit" in text


def board_row(method, share, **changed):
    row = {
        "benchmark": "e2",
        "method": method,
        "family": "tuned",
        "n_seeds": 30,
        "n_rows": 10_000,
        "nll": 0.5 + share / 200,
    }
    ends = {
        "difference": share / 200,
        "low": share / 200 - 0.001,
        "high": share / 200 + 0.001,
        "detectable": 0.002,
    }
    return {**row, **ends, "test": "tie", "conclusion": "equivalent", "cost": 1.0, **changed}


def test_advice_for_a_budget_is_the_best_that_it_allows(pages, monkeypatch):
    from pages.second import data, overview

    found = [
        board_row("ce", 0.0, conclusion="baseline"),
        board_row("ensemble", -2.0, test="better", conclusion="better", cost=2.5),
        board_row("gamma_net", -1.0, test="better", conclusion="better", cost=2.2),
        board_row("ema", -0.1),
    ]
    monkeypatch.setattr(data, "rows", lambda name: found if name == "leaderboard/board.csv" else [])
    assert data.done() == ["e2"]
    best = [data.best_within(budget, [data.rivals("e2")]) for budget in data.BUDGETS]
    assert [found[0]["method"] for found in best] == ["ema", "gamma_net", "ensemble"]
    assert overview._best(best[0]).startswith("cross-entropy: no method is better. Closest: `ema` (E2 −0.1%")
    assert overview._best(best[1]).startswith("`gamma_net` (E2 −1.0%")
    worse = board_row("gamma_net", 0.5, benchmark="t1", test="worse")
    assert overview._best([*best[1], worse]).startswith("`gamma_net`, but it is not better everywhere")
    assert data.share(found[1]) == pytest.approx(-2.0)


def decayed_row(method, share, **changed):
    return board_row(f"{method}@decay", share, family="decay", n_seeds=10, **changed)


def test_pages_warn_where_rivals_have_less_weight_decay(pages, monkeypatch):
    from pages.second import benchmark, data, quotes, words

    chosen = [{"method": "ce", "chosen": f"recipe.weight_decay={one}"} for one in ("0.002", "0.002", "0.0")]
    designed = [
        board_row("ce", 0.0, conclusion="baseline"),
        board_row("ema", 2.0, test="worse", conclusion="worse"),
        board_row("ensemble", -0.2, cost=5.0),
    ]
    supplement = [decayed_row("ema", -1.5, test="better", conclusion="better")]
    compared = {"method": [{"title": "ce"}, {"title": "ema@decay"}], "seed": list(range(10))}
    spec = data.spec
    monkeypatch.setattr(data, "spec", lambda name: compared if name == "e2-3-decay" else spec(name))

    def files(found):
        known = {"leaderboard/board.csv": found, "second/e2/runs.csv": chosen}
        monkeypatch.setattr(data, "rows", lambda name: known.get(name, []))
        data.board.cache_clear()

    files(designed)
    [warning, _] = benchmark._warning("e2")
    assert "Only `ce` and `ensemble` choose a weight decay there" in warning
    assert "chose 0.002 in 2 of 3 seeds" in warning
    assert "is not complete yet" in warning
    assert "It is not complete yet for E2." in words.decay_note()
    assert data.same_decay("e2") == []
    assert not any("budget" in point for point in quotes.advice())
    assert words.methods_table()[0] == "| method | E2, as designed |"

    files([*designed, *({**row, "n_seeds": 3} for row in supplement)])
    assert data.same_decay("e2") == []

    files([*designed, *supplement])
    [warning, _] = benchmark._warning("e2")
    assert "there, 1 of 1 are better" in warning
    assert "here, 0 of 2 are better, 1 equivalent within 1%, 0 undecided and 1 worse" in warning
    assert [data.plain_name(row) for row in data.same_decay("e2")] == ["ema", "ensemble"]
    assert any(
        "`ema` (averaged weights) has the lowest mean log-loss: −1.5% in E2" in one for one in quotes.advice()
    )
    assert words.methods_table()[0] == "| method | E2, as designed | E2, same weight decay |"
    assert not data.needs_decay("a2")


def test_a_shifted_test_set_has_a_table_and_an_answer(pages, monkeypatch):
    from pages.second import benchmark, data, overview

    monkeypatch.setattr(data, "designed_seeds", lambda name: 2)  # as if this benchmark were complete
    assert "t2" in data.done()
    text = benchmark.page("t2")
    assert "## Under shift" in text
    assert "Later months:" in text
    assert "[T2, later months](second-t2.md#under-shift): cross-entropy has an NLL of" in overview.overview()
    assert "## Under shift" not in benchmark.page("t1")


def test_quotes_say_what_the_files_say(pages):
    from pages import quotes

    for path, text in quotes.quoting_pages():
        assert path.read_text("utf-8") == text


def test_another_number_in_a_file_is_another_page(pages):
    from pages import results

    before = pages.losses_of("e")
    row = next(
        row
        for row in results.rows("e/scores.csv")
        if (row["method"], row["metric"], row["calibrator"], row["split"])
        == ("ce", "nll", "identity", "test")
    )
    row["value"] += 0.1
    results._values.cache_clear()
    assert pages.losses_of("e") != before


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(EVIDENCE))
    for name in (
        "tidy",
        "pairs",
        "differences",
        "ranks",
        "run",
        "advised",
        "truth",
        "costs",
        "collect",
        "fresh",
    ):
        monkeypatch.delitem(sys.modules, name, raising=False)


def check_rows(found, committed):
    """Compare computed rows with those of a file, which keep six digits."""
    assert len(found) == len(committed)
    for row, line in zip(found, committed, strict=True):
        numbers = {key for key, value in row.items() if isinstance(value, float)}
        assert {key: row[key] for key in row.keys() - numbers} == {
            key: line[key] for key in line.keys() - numbers
        }
        assert [row[key] for key in numbers] == pytest.approx(
            [line[key] for key in numbers], rel=1e-5, abs=1e-12
        )


@pytest.mark.parametrize(
    "file", sorted(EVIDENCE.rglob("*.csv")), ids=lambda file: str(file.relative_to(EVIDENCE))
)
def test_no_row_stands_twice(file):
    rows = file.read_text("utf-8").splitlines()
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize(
    "file", sorted(EVIDENCE.rglob("scores.csv")), ids=lambda file: str(file.parent.relative_to(EVIDENCE))
)
def test_intervals_of_scores_hold_the_scores(file):
    known = [row for row in read_rows(file) if row["low"] is not None]
    assert known
    assert all(row["low"] <= row["value"] <= row["high"] for row in known)


def test_intervals_on_fresh_rows_hold_the_scores(scripts, monkeypatch):
    import fresh

    from equipoise.metrics.row_draws import ResamplePlan, RowDraws

    rng = np.random.default_rng(0)
    values = {"accuracy": 0.7, "nll": 0.6, "brier": 0.4, "ece": 0.05}
    draws = {metric: rng.normal(0, 0.002, 200) for metric in values}

    class Judge:
        def draws(self, run, calibrator, split):
            return RowDraws(values, draws, ResamplePlan(1000, 1000, 200, 0))

        def extras(self, run, calibrator):
            return {}

    monkeypatch.setattr(fresh, "members", lambda group, tried: [("ce", 0, None)])
    found = list(fresh.score_rows("e", None, Judge()))
    assert {row["metric"] for row in found} == set(values)
    for row in found:
        assert row["value"] - 0.01 < row["low"] < row["value"] < row["high"] < row["value"] + 0.01


@pytest.mark.parametrize("folder", PAIRED)
def test_differences_follow_from_the_paired_rows(scripts, folder):
    from differences import differences

    name = Path(folder).name.removesuffix("_fresh")
    found = differences(name, read_rows(EVIDENCE / folder / "paired.csv"))
    check_rows(list(found), read_rows(EVIDENCE / folder / "differences.csv"))


@pytest.mark.parametrize("folder", PAIRED)
def test_intervals_exclude_zero_exactly_where_a_verdict_names_a_winner(folder):
    for row in read_rows(EVIDENCE / folder / "differences.csv"):
        is_apart = row["low"] > 0 or row["high"] < 0
        assert (row["verdict"] != "tie") == is_apart == (row["p_value"] < 0.05)
        assert row["detectable"] >= (row["high"] - row["low"]) / 2 * 0.999


@pytest.mark.parametrize("benchmark", RUN)
def test_ranks_follow_from_the_scores(scripts, benchmark):
    from ranks import ranks

    labels = {row["method"] for row in read_rows(EVIDENCE / benchmark / "differences.csv")}
    found = list(ranks(benchmark, read_rows(EVIDENCE / benchmark / "scores.csv"), labels))
    check_rows(found, read_rows(EVIDENCE / benchmark / "ranks.csv"))


def paired_rows(gaps, *, shared=None, half=0.02, method="focal"):
    about = {"question": "baseline", "split": "test", "calibrator": "identity", "versus": "ce"}
    fixed = {**about, "versus_calibrator": "identity", "metric": "ece", "method": method}
    return [
        {
            **fixed,
            "seed": seed,
            "value": 0.1 + gap,
            "versus_value": 0.1,
            "low": gap - half,
            "high": gap + half,
            "shared_error": shared,
        }
        for seed, gap in enumerate(gaps)
    ]


def test_the_shared_row_error_replaces_its_upper_bound_where_every_seed_has_it(scripts):
    from differences import standard_error

    known, unknown = paired_rows((0.01, 0.02, 0.03), shared=0.004), paired_rows((0.01, 0.02, 0.03))
    assert standard_error(known).rows == pytest.approx(0.004)
    assert standard_error(unknown).rows == pytest.approx(0.02 / 1.96, rel=1e-3)
    assert standard_error([*known[:2], unknown[2]]).rows == pytest.approx(0.02 / 1.96, rel=1e-3)
    assert standard_error(known).seeds == pytest.approx(0.01 / 3**0.5)
    assert standard_error(known).seeds_df == 2


def test_a_family_is_corrected_for_its_size(scripts):
    from differences import differences

    gaps = (-0.05, -0.065, -0.035)
    [single] = differences("x", paired_rows(gaps, shared=0.001))
    others = [row for name in "bcdefgh" for row in paired_rows((-0.01, 0.0, 0.01), shared=0.001, method=name)]
    first, *_ = differences("x", paired_rows(gaps, shared=0.001, method="a") + others)
    assert (single["comparisons"], single["verdict"]) == (1, "better")
    assert (first["comparisons"], first["verdict"]) == (8, "tie")
    assert first["p_value"] == pytest.approx(8 * single["p_value"])
    assert first["detectable"] > single["detectable"]


def test_fresh_rows_of_a_mixture_are_in_no_split(scripts, monkeypatch):
    import fresh

    spec = read_comparison(EVIDENCE / "specs" / "e-1-losses.toml").specs[0]
    monkeypatch.setattr(fresh, "N_ROWS", 1000)
    data, truth = fresh.fresh_data(spec, None)
    used = fresh.data_of(spec)
    assert (len(data.rows("test")), len(truth)) == (1000, 1000)
    assert int(data.rows("test").min()) == len(used)
    seen = {tuple(row.tolist()) for row in used.inputs}
    assert not seen & {tuple(row.tolist()) for row in data.inputs[data.rows("test")]}


def test_unused_training_images_join_the_test_images(scripts, monkeypatch):
    import fresh

    spec = read_comparison(EVIDENCE / "specs" / "a-1-losses.toml").specs[0]
    whole = from_arrays(torch.zeros(100, 3), torch.arange(100) % 2, name="small")
    few = dataclasses.replace(whole, splits={**whole.splits, "train": whole.rows("train")[:10]})
    monkeypatch.setattr(fresh, "data_of", lambda spec, root: few)
    data, truth = fresh.fresh_data(spec, "data")
    used = {int(row) for split in ("train", "tune", "calib") for row in few.rows(split)}
    assert truth is None
    assert set(data.rows("test").tolist()) == set(range(100)) - used


def test_wins_follow_from_the_scores_of_all_benchmarks(scripts):
    from ranks import wins

    found = list(wins({benchmark: read_rows(EVIDENCE / benchmark / "scores.csv") for benchmark in RUN}))
    committed = read_rows(EVIDENCE / "wins.csv")
    names = ("metric", "calibrator", "method", "tasks")
    assert [[row[name] for name in names] for row in found] == [
        [row[name] for name in names] for row in committed
    ]
    for row, line in zip(found, committed, strict=True):
        ends = ("wins", "wins_low", "wins_high")
        assert [row[name] for name in ends] == pytest.approx([line[name] for name in ends], abs=1e-5)


def test_who_always_beats_all_rivals_wins_everything(scripts):
    from ranks import wins

    def scores(order):
        rows = [("best", 0.1), ("middle", 0.2), ("worst", 0.3)]
        fixed = {"metric": "ece", "calibrator": "identity", "split": "test"}
        return [
            {**fixed, "method": name, "seed": seed, "value": value + seed / 1000}
            for seed in (0, 1)
            for name, value in rows[::order]
        ]

    found = {row["method"]: row for row in wins({"one": scores(1), "two": scores(-1)})}
    assert {name: row["wins"] for name, row in found.items()} == {"best": 1.0, "middle": 0.5, "worst": 0.0}
    assert (found["best"]["wins_low"], found["worst"]["wins_high"]) == (1.0, 0.0)


@pytest.mark.parametrize("benchmark", RUN)
def test_what_is_told_of_pairs_is_told_of_runs(benchmark):
    runs = {(row["method"], row["seed"]) for row in read_rows(EVIDENCE / benchmark / "runs.csv")}
    scores = {
        (row["method"], row["seed"], row["calibrator"], row["split"], row["metric"]): row["value"]
        for row in read_rows(EVIDENCE / benchmark / "scores.csv")
    }
    for row in read_rows(EVIDENCE / benchmark / "paired.csv"):
        for method, calibrator, value in (
            (row["method"], row["calibrator"], row["value"]),
            (row["versus"], row["versus_calibrator"], row["versus_value"]),
        ):
            assert (method, row["seed"]) in runs
            place = (method, row["seed"], calibrator, row["split"], row["metric"])
            # A confidence at the very edge of a bin may be rounded into either, which moves an ECE by a row's share.
            slack = 5e-4 if row["metric"] == "ece" else 1e-6
            assert value == pytest.approx(scores[place], rel=1e-4, abs=slack)


def test_costs_are_ratios_within_a_turn(scripts):
    from costs import costs

    turns = [{"ce": 1.0, "two": 2.0}, {"ce": 3.0, "two": 6.6}, {"ce": 2.0, "two": 4.4}]
    [usual, other] = costs("a", turns)
    assert (usual["step"], usual["low"], usual["high"]) == (1.0, 1.0, 1.0)
    assert (other["step"], other["low"]) == pytest.approx((2.2, 2.1))


def test_costs_were_measured_of_methods_that_were_compared(pages):
    from pages import results

    assert results.costs("a").keys() <= set(results.methods("a"))
    assert results.costs("a")["ce"]["step"] == 1


def test_rows_of_other_seeds_stay_to_the_letter(scripts, tmp_path, monkeypatch):
    import tidy

    monkeypatch.setattr(tidy, "HERE", tmp_path)
    old = "method,seed,run,value\nfocal,0,1234e56,0.10\nce,0,0012,0.2\n"
    (tmp_path / "runs.csv").write_text(old)
    rows = [
        {"method": "ce", "seed": 1, "run": "ab", "value": 1 / 3},
        {"method": "focal", "seed": 0, "run": "cd", "value": None},
        {"method": "new", "seed": 0, "run": "ef", "value": 2.0},
    ]
    tidy.add("runs.csv", rows, by=("method", "seed"))
    lines = (tmp_path / "runs.csv").read_text().splitlines()
    assert lines[1:] == ["focal,0,cd,", "ce,0,0012,0.2", "ce,1,ab,0.333333", "new,0,ef,2.0"]


def test_a_run_that_is_repeated_keeps_its_first_times(scripts, tmp_path, monkeypatch):
    import tidy

    monkeypatch.setattr(tidy, "HERE", tmp_path)
    (tmp_path / "runs.csv").write_text("method,seed,run,seconds\nce,0,0012,2.5\nce,1,0034,2.5\n")
    again = [
        {"method": "ce", "seed": seed, "run": run, "seconds": 9.0} for seed, run in enumerate(("0012", "56"))
    ]
    tidy.add("runs.csv", again, by=("method", "seed"), repeated=("run",))
    lines = (tmp_path / "runs.csv").read_text().splitlines()
    assert lines[1:] == ["ce,0,0012,2.5", "ce,1,56,9.0"]


@pytest.mark.parametrize("file", sorted((EVIDENCE / "specs").glob("*.toml")), ids=lambda file: file.stem)
def test_specs_can_be_read(file):
    comparison = read_comparison(file)
    assert comparison.name == file.stem
    assert comparison.baseline == "ce"


TUNED = sorted((EVIDENCE / "specs").glob("*-1-tuned.toml"))


@pytest.mark.parametrize("file", TUNED, ids=lambda file: file.stem)
def test_methods_of_the_second_edition_have_the_same_budget_everywhere(file):
    comparison = read_comparison(file)
    wanted = {one.label: one for one in read_comparison(EVIDENCE / "specs" / "e2-1-tuned.toml").tuned}
    assert len(wanted) == 16
    assert [one.label for one in comparison.tuned] == list(comparison.methods)
    for one in comparison.tuned:
        assert len(first_settings(one)) == 4
        assert (one.by, one.rule) == ("nll_scaled", "best")
        assert one == wanted[one.label]


def test_the_seeds_are_those_of_the_design():
    text = (EVIDENCE / "README.md").read_text("utf-8").partition("## State")[0]
    for file in TUNED:
        name = file.stem.partition("-")[0]
        seeds = {spec.seed for spec in read_comparison(file).specs}
        [row] = [
            line for line in text.splitlines() if line.startswith(f"| `{name}` |") and "judged" not in line
        ]
        assert row.split(" | ")[2] == str(len(seeds)), name


def test_a_cell_of_a_tuned_method_is_all_its_settings(pages):
    from run import queue

    cell = [spec for _, spec in queue(["e2"], [3], ["focal"])]
    assert [spec.method.options["gamma"] for spec in cell] == [1.0, 2.0, 3.0, 5.0]
    assert {spec.seed for spec in cell} == {3}


def test_rivals_with_weight_decay_are_a_family_of_their_own(scripts):
    from differences import differences

    def paired(method, gap):
        row = {"question": "baseline", "split": "test", "method": method, "calibrator": "temperature"}
        row |= {"versus": "ce", "versus_calibrator": "temperature", "metric": "nll", "shared_error": None}
        ends = {"value": 0.5 + gap, "versus_value": 0.5, "low": gap - 0.01, "high": gap + 0.01}
        return [{**row, **ends, "seed": seed} for seed in (0, 1)]

    rows = [row for one in ("focal", "mbls", "focal@decay") for row in paired(one, 0.0)]
    found = {row["method"]: row for row in differences("e2", rows)}
    assert {name: row["family"] for name, row in found.items()} == {
        "focal": "tuned",
        "mbls": "tuned",
        "focal@decay": "decay",
    }
    assert found["focal"]["comparisons"] == 2
    assert found["focal@decay"]["comparisons"] == 1


@pytest.mark.parametrize("benchmark", ["e2", "t1", "t2"])
def test_the_supplement_changes_nothing_but_the_weight_decay(benchmark):
    def read(part):
        spec = tomllib.loads((EVIDENCE / "specs" / f"{benchmark}-{part}.toml").read_text("utf-8"))
        return spec, {one["title"]: one for one in spec.pop("method")}

    (designed, tuned), (spec, decayed) = read("1-tuned"), read("3-decay")
    assert {**spec, "name": "", "seed": []} == {**designed, "name": "", "seed": []}
    assert decayed.pop("ce") == tuned.pop("ce")
    assert {title.removesuffix("@decay") for title in decayed} == tuned.keys() - {"ensemble"}
    for title, one in decayed.items():
        before = tuned[title.removesuffix("@decay")]
        recipe = {**before.get("recipe", {}), "weight_decay": 0.002}
        assert one == {**before, "title": title, "recipe": recipe}


def test_cells_of_auto_have_scores_and_paired_differences(pages):
    import auto_cells
    from submissions import paired_rows, reference_of, shared_draws

    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 900)
    labels = (rng.random((900, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    rows = Predictions(probs=probs, labels=labels, ids=np.arange(900))
    calib, test = rows.take(slice(0, 300)), rows.take(slice(300, 900))
    reference = reference_of("e2", {seed: {"calib": calib, "test": test} for seed in (0, 1)})
    about = {"benchmark": "e2", "method": "auto", "seed": 1}
    scores = {row["metric"]: row for row in auto_cells.score_rows(about, test)}
    paired = {row["metric"]: row for row in paired_rows("auto", {1: shared_draws(test)}, reference)}
    assert scores.keys() == set(auto_cells.METRICS)
    assert paired["nll"]["value"] == pytest.approx(scores["nll"]["value"], rel=1e-5)
    assert paired["nll"]["versus_value"] == pytest.approx(reference["values"]["nll"][1])
    assert paired["nll"]["shared_error"] is None


def test_endpoints_of_decisions_are_those_of_the_test_rows(pages):
    from acting import acting_scores

    rng = np.random.default_rng(0)
    top = rng.uniform(0.7, 1, 6000)
    rows = Predictions(probs=top, labels=(rng.random(6000) < top).astype(int), ids=np.arange(6000))
    tune, test = rows.take(slice(0, 3000)), rows.take(slice(3000, 6000))
    found = acting_scores(tune, test)
    accepted = test.confidence >= np.sort(test.confidence)[::-1][round(3000 * found["coverage_at_5"]) - 1]
    assert 0.05 < found["coverage_at_5"] < 0.5
    assert found["error_at_5"] == pytest.approx(1 - test.correct[accepted].mean())
    assert found["error_at_5"] < 0.06
    assert found["set_coverage_90"] == pytest.approx(0.9, abs=0.03)
    assert 0.9 < found["set_size_90"] < 2


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim['method']} against {claim['versus']}")
def test_claims_are_about_methods_and_cells_that_exist(pages, claim):
    from pages import claims, results

    known = {key for category in ("losses", "objectives") for key in CATALOGUE[category]}
    assert {claim["method"], claim["versus"]} <= known
    assert set(claim["benchmarks"]) <= results.benchmarks().keys()
    assert set(claim.get("among", ())) <= known
    assert all(tuple(cell.split("/")) in claims._printed() for cell in claim["printed"])


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim['method']} against {claim['versus']}")
def test_claims_are_asked_where_they_can_be_answered(claim):
    for benchmark in claim["benchmarks"]:
        comparisons = [read_comparison(file) for file in (EVIDENCE / "specs").glob(f"{benchmark}-*.toml")]
        labels = {label for comparison in comparisons for label in comparison.methods}
        assert {claim["method"], claim["versus"]} <= labels, benchmark


@pytest.fixture
def told(pages, monkeypatch):
    """Give evidence of two methods and their seeds as if it had been read from files."""
    from pages import results

    def tell(**files):
        known = {f"x/{name}.csv": rows for name, rows in files.items()}
        monkeypatch.setattr(results, "rows", lambda name: known.get(name, []))
        for module in (sys.modules["pages.claims"], sys.modules["pages.defaults"], pages):
            if hasattr(module, "rows"):
                monkeypatch.setattr(module, "rows", results.rows)
        for name in ("seeds_of", "methods", "entrants", "_values", "_verdicts"):
            getattr(results, name).cache_clear()
        return results

    yield tell
    for name in ("seeds_of", "methods", "entrants", "_values", "_verdicts"):
        getattr(results, name).cache_clear()


def difference_row(method="focal", **changed):
    about = {
        "question": "baseline",
        "split": "test",
        "method": method,
        "calibrator": "identity",
        "versus": "ce",
    }
    found = {
        "metric": "ece",
        "n_seeds": 3,
        "difference": -0.02,
        "low": -0.03,
        "high": -0.01,
        "verdict": "better",
    }
    return {**about, "versus_calibrator": "identity", **found, **changed}


def score_rows(method, values, half):
    about = {"method": method, "calibrator": "identity", "split": "test", "metric": "ece"}
    return [
        {**about, "seed": seed, "value": value, "low": value - half, "high": value + half}
        for seed, value in enumerate(values)
    ]


def run_rows(method, n_seeds):
    return [{"method": method, "seed": seed, "run": f"{method}-{seed}"} for seed in range(n_seeds)]


def test_a_verdict_of_one_seed_stands_in_parentheses(told):
    assert told(differences=[difference_row()]).sign("x", "focal", "ece") == "+"
    assert told(differences=[difference_row(n_seeds=1)]).sign("x", "focal", "ece") == "(+)"


def test_intervals_in_pictures_are_of_rows_and_seeds(told):
    scores = score_rows("ce", (0.1, 0.2, 0.6), 0.01) + score_rows("focal", (0.3, 0.3, 0.31), 0.01)
    runs = run_rows("ce", 3) + run_rows("focal", 3)
    data = told(scores=scores, runs=runs, differences=[difference_row(), difference_row("ce")])
    middle, low, high = data.interval("x", "ce", "identity", "ece")
    assert (middle, low) == (pytest.approx(0.3), 0.0)
    # The standard error of these three seeds is 0.153, far more than the rows have.
    assert high - middle > 0.3


def test_settings_that_are_not_the_papers_are_no_entrants(told):
    rows = [difference_row(), difference_row("focal(gamma by nll)"), difference_row("ce")]
    rows.append(difference_row("focal(gamma by nll)", question="variant", versus="focal"))
    data = told(
        differences=rows,
        runs=[row for one in ("ce", "focal", "focal(gamma by nll)") for row in run_rows(one, 3)],
    )
    assert data.entrants("x") == ["ce", "focal"]
    assert len(data.methods("x")) == 3


def test_no_loss_seen_is_not_yet_no_loss(told, monkeypatch):
    claim = {"method": "focal", "versus": "ce", "metric": "accuracy", "want": "not worse"}
    runs = run_rows("ce", 3) + run_rows("focal", 3)

    def verdict(low, high, test="tie"):
        row = difference_row(metric="accuracy", verdict=test, difference=(low + high) / 2, low=low, high=high)
        told(differences=[row], runs=runs)
        return sys.modules["pages.claims"].outcome(claim, "x")[2]

    assert verdict(-0.002, 0.002) == "**holds**"
    assert verdict(-0.012, 0.012) == "not shown"
    assert verdict(-0.004, -0.001, "worse") == "**holds**"  # less than the margin of half a point
    assert verdict(-0.009, -0.001, "worse") == "**fails**: the opposite"


def test_a_benchmark_without_all_seeds_is_left_out(pages, monkeypatch):
    from pages.second import data, leaderboard, overview

    found = [board_row("ce", 0.0, conclusion="baseline", n_seeds=29), board_row("ema", -0.1, n_seeds=29)]
    monkeypatch.setattr(data, "rows", lambda name: found if name == "leaderboard/board.csv" else [])
    assert data.done() == []
    assert "E2 (29 of 30 seeds were run)" in leaderboard.page()
    assert "29 of 30 seeds were run" in overview.overview()


def test_claims_are_asked_where_the_second_edition_has_their_methods(pages):
    from pages import claims
    from pages.second import data

    found = claims.second_claims(data.done())
    about = {(one.says, one.benchmark) for one in found}
    assert ("Diff-DML is more accurate than cross-entropy", "e2") in about
    assert ("Diff-DML has a lower ECE than mutual learning", "t1") not in about  # no mutual learning there
    assert all(one.effect and one.verdict for one in found)


def test_methods_that_were_not_paired_are_compared_by_their_means(told):
    claim = {"method": "focal", "versus": "ce", "metric": "ece"}
    runs = run_rows("ce", 3) + run_rows("focal", 3)
    scores = score_rows("ce", (0.1, 0.11, 0.12), 0.01) + score_rows("focal", (0.3, 0.31, 0.32), 0.01)
    told(scores=scores, runs=runs, differences=[difference_row("ce"), difference_row(versus="other")])
    effect, seeds, verdict = sys.modules["pages.claims"].outcome(claim, "x")
    assert effect.endswith("not paired")
    assert (seeds, verdict) == ("3", "**fails**: the opposite")


def test_what_was_not_run_is_said_to_be(pages, monkeypatch):
    from pages import claims, results

    monkeypatch.setattr(results, "FOLDER", Path("nowhere"))
    for cached in (results.rows, results._verdicts):
        cached.cache_clear()
    assert claims.outcome(CLAIMS[0], "a") == ("", "", "not yet run")


def test_a_cell_that_is_repeated_gives_what_was_committed(scripts, tmp_path):
    from truth import truth_of, truth_scores

    comparison = read_comparison(EVIDENCE / "specs" / "e-1-losses.toml")
    spec = next(spec for spec in comparison.specs if spec.method.name == "ce" and spec.seed == 0)
    options = quick_options()
    found = run(spec, tmp_path, **options)
    machines = json.loads((EVIDENCE / "e" / "machines.json").read_text("utf-8"))["machines"]
    [made_on] = [machine for machine in machines if spec.seed in machine["seeds"]]
    here = {"torch": torch.__version__, "capability": torch.backends.cpu.get_cpu_capability()}
    # The same kind of machine gives the same digits; another rounds differently, and forty steps carry that on.
    slack = 2e-6 if here == {key: made_on[key] for key in here} else 0.02
    committed = [
        row
        for row in read_rows(EVIDENCE / "e" / "scores.csv")
        if row["method"] == "ce" and row["seed"] == 0 and row["split"] == "test"
    ]
    for calibrator in ("identity", "temperature"):
        card = found.scores(calibrator).test
        for metric in ("accuracy", "nll", "ece"):
            [row] = [r for r in committed if r["calibrator"] == calibrator and r["metric"] == metric]
            assert card[metric].value == pytest.approx(row["value"], abs=slack), (calibrator, metric)
    truth = truth_scores(found.predictions("test"), truth_of(spec, None))
    [row] = [r for r in committed if (r["calibrator"], r["metric"]) == ("identity", "true_error")]
    assert truth["true_error"] == pytest.approx(row["value"], abs=slack)


def test_people_are_asked_about_cifar(scripts, tmp_path):
    from truth import truth_of

    spec = read_comparison(EVIDENCE / "specs" / "c-1-losses.toml").specs[0]
    with pytest.raises(SystemExit, match="say with --data which folder"):
        truth_of(spec, None)
    with pytest.raises(DataError, match="cifar10h: not found"):
        truth_of(spec, str(tmp_path))
    other = read_comparison(EVIDENCE / "specs" / "b-1-losses.toml").specs[0]
    assert truth_of(other, None) is None


def test_coverage_is_that_of_the_interval_of_a_scorecard(monkeypatch):
    monkeypatch.syspath_prepend(str(EVIDENCE))
    import interval_coverage

    inputs, labels = interval_coverage.gaussian_mixture().sample(400, seed=3)
    confidence, predicted, _ = interval_coverage.predict(interval_coverage.gaussian_mixture(), inputs, 1.6)
    rows = Predictions(confidence=confidence, predicted=predicted, labels=labels.numpy())
    card = score(rows, n_bins=15, n_resamples=50, seed=4)
    found = interval_coverage.ece_and_interval(rows, seed=4, n_resamples=50)
    assert found == pytest.approx(
        (card["ece"].value, card["debiased_ece"].value, card["ece"].low, card["ece"].high)
    )
