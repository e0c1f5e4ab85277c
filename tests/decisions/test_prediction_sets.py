import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta, kstest

from equipoise.core import Predictions
from equipoise.core.errors import DataError, NotFittedError, SplitError
from equipoise.decisions import PredictionSets, check_decision, set_scores

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "decisions.json").read_text())


def draw(n, seed, k=5, **more):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    labels = (logits + rng.gumbel(size=(n, k))).argmax(1)
    return Predictions(logits=logits, labels=labels, ids=np.arange(n) + 10**6 * seed, **more)


@pytest.mark.parametrize(
    ("method", "options", "name"),
    [
        ("lac", {}, "lac_q"),
        ("aps", {}, "aps_q_nonrandom"),
        ("raps", {"penalty": 0.01, "k_reg": 2}, "raps_q_nonrandom_lam0.01_kreg2"),
    ],
)
def test_limits_agree_with_worked_values(method, options, name):
    rows = Predictions(logits=np.array(GOLDEN["logits"]), labels=GOLDEN["labels"])
    sets = PredictionSets(method, coverage=1 - GOLDEN["alpha"], randomized=False, **options).fit(rows)
    assert sets.limits[""] == pytest.approx(GOLDEN[name], rel=1e-12)


def test_scores_by_hand():
    probs = np.array([[0.5, 0.2, 0.3]])
    assert set_scores(probs, "lac")[0] == pytest.approx([0.5, 0.8, 0.7])
    assert set_scores(probs, "aps", uniform=np.array([0.5]))[0] == pytest.approx([0.25, 0.9, 0.65])
    assert set_scores(probs, "raps", penalty=0.1, k_reg=1)[0] == pytest.approx([0.5, 1.2, 0.9])


def test_tied_classes_have_the_same_score():
    assert set_scores(np.array([[0.4, 0.3, 0.3]]), "aps")[0] == pytest.approx([0.4, 0.7, 0.7])


@pytest.mark.parametrize("method", ["lac", "aps", "raps"])
def test_coverage_follows_the_beta_law(method):
    # Coverage given the calibration set, measured on many rows, for 150 calibration sets of 99 rows.
    n, test = 99, draw(4000, 0)
    found = [
        PredictionSets(method, coverage=0.9, k_reg=2, seed=seed).fit(draw(n, seed))(test)
        for seed in range(1, 151)
    ]
    at = np.arange(len(test))
    coverage = [float(one.members[at, test.labels].mean()) for one in found]
    assert kstest(coverage, beta(90, 10).cdf).pvalue > 0.001
    low, high = found[0].made_by.expected_coverage()
    assert (low, high) == pytest.approx(beta(90, 10).ppf([0.025, 0.975]))


def test_sets_without_randomization_are_larger():
    calib, test = draw(2000, 1), draw(2000, 2)
    random, plain = (
        PredictionSets("aps", randomized=choice).fit(calib)(test).report() for choice in (True, False)
    )
    assert random.mean_size < plain.mean_size


def test_report_adds_up():
    rows = draw(1500, 3, groups={"site": np.array(["a", "b"])[np.arange(1500) % 2]})
    found = PredictionSets("lac").fit(draw(500, 4))(rows)
    one = found.report()
    assert sum(one.sizes) == one.n == 1500
    assert one.mean_size == pytest.approx(found.sizes.mean())
    for part in (one.by_class, one.by_size, one.by_group["site"]):
        assert sum(row.n for row in part) == 1500
        assert sum(row.n * row.coverage for row in part) / 1500 == pytest.approx(one.coverage)
    assert one.coverage_low < one.coverage < one.coverage_high
    assert json.loads(json.dumps(one.as_dict()))["target"] == 0.9


def test_class_conditional_sets_cover_every_class():
    def uneven(n, seed):
        rng = np.random.default_rng(seed)
        labels = rng.choice(3, n, p=[0.8, 0.15, 0.05])
        return Predictions(
            logits=rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[labels] + [2, 0, 0], labels=labels
        )

    calib, test = uneven(6000, 6), uneven(6000, 7)
    marginal = PredictionSets("lac").fit(calib)(test).report()
    within = PredictionSets("lac", conditional="class").fit(calib)(test).report()
    assert min(row.coverage for row in marginal.by_class) < 0.8
    assert min(row.coverage_high for row in within.by_class) > 0.9


def test_a_class_without_calibration_rows_is_in_every_set():
    rows = draw(500, 8, k=3)
    calib = rows.take(rows.labels != 2)
    sets = PredictionSets("lac", conditional="class").fit(calib)
    assert sets.counts["2"] == 0
    assert sets(draw(50, 9, k=3)).members[:, 2].all()


def test_group_conditional_sets_and_unknown_groups():
    site = np.array(["a", "b"])[np.arange(2000) % 2]
    sets = PredictionSets("aps", conditional="group", by="site").fit(draw(2000, 10, groups={"site": site}))
    assert set(sets.limits) == {"a", "b"}
    assert sets(draw(100, 11, groups={"site": site[:100]})).members.any()
    with pytest.raises(DataError, match="'c' of 'site' has no calibration rows"):
        sets(draw(2, 12, groups={"site": ["a", "c"]}))
    with pytest.raises(DataError, match="Columns: none"):
        sets(draw(2, 12))


def test_parameters_of_raps_are_chosen_on_rows_apart():
    calib = draw(1000, 13, k=20)
    sets = PredictionSets("raps", tune=0.2).fit(calib)
    assert sets.counts[""] == 800
    fixed = PredictionSets("raps", penalty=0.001, k_reg=15).fit(calib)
    test = draw(3000, 14, k=20)
    assert sets(test).report().mean_size <= fixed(test).report().mean_size * 1.05
    assert sets(test).report().coverage_high > 0.88


def test_too_few_rows_give_full_sets():
    sets = PredictionSets("lac", coverage=0.9).fit(draw(8, 15))
    assert sets.limits[""] == np.inf
    assert sets(draw(5, 16)).members.all()


def test_saved_sets_are_the_same(tmp_path):
    sets = PredictionSets("raps", conditional="class", k_reg=2).fit(draw(40, 17))
    sets.save(tmp_path / "sets.json")
    back = PredictionSets.load(tmp_path / "sets.json")
    test = draw(100, 18)
    assert (back(test).members == sets(test).members).all()
    text = (tmp_path / "sets.json").read_text().replace('"coverage": 0.9', '"coverage": 0.5')
    (tmp_path / "sets.json").write_text(text)
    with pytest.raises(DataError, match="digest"):
        PredictionSets.load(tmp_path / "sets.json")


def test_rows_of_the_fit_cannot_judge(tmp_path):
    calib = draw(200, 19)
    sets = PredictionSets("lac").fit(calib)
    with pytest.raises(SplitError, match="used to fit the sets"):
        sets(calib).report()


def test_wrong_use():
    with pytest.raises(NotFittedError):
        PredictionSets()(draw(5, 20))
    with pytest.raises(ValueError, match="Did you mean 'raps'"):
        PredictionSets("rasp")
    with pytest.raises(ValueError, match=r"90% is 0\.9"):
        PredictionSets(coverage=90)
    with pytest.raises(TypeError, match="given together"):
        PredictionSets(conditional="group")
    with pytest.raises(ValueError, match="must have 5 classes"):
        PredictionSets().fit(draw(50, 21))(draw(5, 22, k=3))


def test_too_few_rows_are_named():
    sets = PredictionSets("lac", coverage=0.9, conditional="group", by="site")
    site = np.array(["many"] * 200 + ["few"] * 8 + ["enough"] * 9)
    sets.fit(draw(217, 23, groups={"site": site}))
    assert sets.fewest_rows == 9
    assert sets.full_keys == ["few"]
    assert PredictionSets(coverage=0.95).fewest_rows == 19
    assert PredictionSets("lac").fit(draw(8, 24)).expected_coverage() == (1.0, 1.0)


def test_expected_coverage_of_equal_groups_is_narrower_than_that_of_one():
    site = np.array(["a", "b"])[np.arange(1998) % 2]
    within = PredictionSets("lac", conditional="group", by="site").fit(draw(1998, 25, groups={"site": site}))
    one = beta(900, 100)
    low, high = within.expected_coverage()
    found = beta(1801, 200).ppf([0.025, 0.975])
    assert (low, high) == pytest.approx(found, abs=2e-4)
    assert high - low < np.diff(one.ppf([0.025, 0.975]))


def test_a_check_names_the_classes_in_which_the_promise_is_broken():
    calib, test = draw(2000, 26, k=3), draw(4000, 27, k=3)
    test = Predictions(
        logits=test.logits + np.where(test.labels == 1, 1.5, 0)[:, None] * [0, -1, 0],
        labels=test.labels,
        class_names=["cat", "dog", "fox"],
    )
    sets = PredictionSets("lac", conditional="class").fit(calib)
    found = check_decision(sets, test)
    assert not found.kept
    assert found.text.startswith("The promise is broken in 1 of 3 (class dog) (exact tests, least p = ")
    assert found.details["p_value"] == pytest.approx(3 * found.details["p_values"]["dog"])
    marginal = check_decision(PredictionSets("lac").fit(calib), draw(4000, 28, k=3))
    assert marginal.text.startswith("The promise is kept (exact test, p = ")


def test_rows_that_are_known_in_another_way_are_reported():
    test = draw(500, 29)
    sets = PredictionSets("lac").fit(draw(500, 30))
    unnamed = Predictions(logits=test.logits, labels=test.labels)
    assert check_decision(sets, test).notes == ()
    (note,) = check_decision(sets, unnamed).notes
    assert note.startswith("Whether rows were used to make the decision was not checked")
