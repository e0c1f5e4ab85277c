import numpy as np
import pytest
from scipy.stats import binom

from equipoise.core import Predictions
from equipoise.core.errors import DataError, SplitError
from equipoise.decisions import certify_threshold
from equipoise.decisions.betting import betting_p_value


def draw(n, seed=0, slope=1.0, levels=None, **more):
    """Draw two-class predictions that are wrong with probability slope * (1 - confidence)."""
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.5, 1, n)
    if levels is not None:
        confidence = 0.5 + np.ceil((confidence - 0.5) * levels / 0.5) / levels / 2
    right = rng.random(n) >= slope * (1 - confidence)
    return Predictions(predicted=np.ones(n, int), confidence=confidence, labels=right.astype(int), **more)


def test_record_has_the_fields_of_the_command():
    record = certify_threshold(draw(2000), max_error=0.1, confidence=0.95).certificate.as_dict()
    assert set(record) == {
        "certified", "threshold", "coverage", "coverage_low", "coverage_high", "observed_error", "error_bound", "n",
        "n_accepted", "max_error", "confidence", "groups",
    }  # fmt: skip
    assert record["certified"] is True
    assert record["coverage"] == record["n_accepted"] / record["n"]
    assert record["coverage_low"] < record["coverage"] < record["coverage_high"]


def test_threshold_passes_its_own_test():
    rows = draw(2000)
    rule = certify_threshold(rows, max_error=0.1)
    accepted = rule(rows)
    one = rule.certificate
    assert accepted.sum() == one.n_accepted
    assert one.observed_error == pytest.approx((~rows.correct[accepted]).mean())
    assert binom.cdf((~rows.correct[accepted]).sum(), accepted.sum(), 0.1) <= 0.05


def true_error(threshold, slope=1.0, levels=None):
    if levels is None:
        return slope * (1 - threshold) / 2
    values = 0.5 + np.arange(1, levels + 1) / levels / 2
    return slope * (1 - values[values >= threshold - 1e-9]).mean()


@pytest.mark.parametrize(("slope", "levels"), [(1.0, None), (2.0, 10)])
@pytest.mark.parametrize("risk", [0.05, 0.1])
def test_200_simulations_keep_the_promise(slope, levels, risk):
    broken = certified = 0
    for seed in range(200):
        one = certify_threshold(
            draw(500, seed, slope, levels), max_error=0.1, confidence=1 - risk
        ).certificate
        certified += one.certified
        broken += one.certified and true_error(one.threshold, slope, levels) > 0.1
    assert broken <= binom.ppf(0.999, 200, risk)
    assert certified > 30


def test_a_useless_score_is_hardly_ever_certified():
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = Predictions(
            predicted=np.ones(300, int),
            confidence=rng.random(300),
            labels=(rng.random(300) > 0.11).astype(int),
        )
        found += certify_threshold(rows, max_error=0.1).certificate.certified
    assert found <= binom.ppf(0.999, 60, 0.05)


def test_rows_of_equal_score_are_accepted_together():
    rows = draw(3000, levels=5)
    rule = certify_threshold(rows, max_error=0.15)
    values = np.unique(rows.confidence)
    assert rule.certificate.threshold in values
    accepted = rule(rows)
    assert all(len(set(accepted[rows.confidence == value])) == 1 for value in values)


def test_order_of_rows_does_not_matter():
    rows = draw(1000)
    mixed = rows.take(np.random.default_rng(1).permutation(1000))
    one, two = (certify_threshold(each, max_error=0.1).certificate for each in (rows, mixed))
    assert one.as_dict() == two.as_dict()


def test_whole_weights_count_rows():
    rows = draw(700)
    weights = np.random.default_rng(3).integers(0, 3, 700)
    repeated = rows.take(np.repeat(np.arange(700), weights))
    one = certify_threshold(rows.with_weights(weights), max_error=0.12).certificate
    assert one.as_dict() == certify_threshold(repeated, max_error=0.12).certificate.as_dict()


def test_other_weights_use_the_betting_bound():
    rng = np.random.default_rng(4)
    rows = draw(4000, slope=0.5, weights=rng.uniform(0.5, 1.5, 4000))
    one = certify_threshold(rows, max_error=0.15).certificate
    assert one.certified
    accepted = rows.confidence >= one.threshold
    rate = np.average(~rows.correct[accepted], weights=rows.weights[accepted])
    assert one.observed_error == pytest.approx(rate)
    assert certify_threshold(rows, min_coverage=0.5).certificate.error_bound > rate * 0.5


def test_betting_test_holds_its_level():
    rng, hits = np.random.default_rng(5), 0
    for _ in range(400):
        weights = rng.uniform(0.2, 1, 300)
        hits += betting_p_value(weights, rng.random(300) < 0.1, 0.1, 1.0, risk=0.1) <= 0.1
    assert hits <= binom.ppf(0.999, 400, 0.1)


def test_scores_of_other_kinds():
    rng = np.random.default_rng(6)
    logits = 2 * rng.normal(size=(3000, 3))
    labels = (logits + rng.gumbel(size=(3000, 3))).argmax(1)
    rows = Predictions(logits=logits, labels=labels, groups={"own": rng.random(3000)})
    for score in ("confidence", "margin", "entropy", rows.confidence**2):
        assert certify_threshold(rows, max_error=0.2, score=score).certificate.certified
    squared = certify_threshold(rows, max_error=0.2, score=rows.confidence**2)
    assert (squared(rows, score=rows.confidence**2) == certify_threshold(rows, max_error=0.2)(rows)).all()
    assert not certify_threshold(rows, max_error=0.2, score="own").certificate.certified
    with pytest.raises(TypeError, match="Pass them as `score`"):
        squared(rows)
    with pytest.raises(DataError, match="Did you mean 'margin'"):
        certify_threshold(rows, max_error=0.2, score="margn")


def test_groups_have_their_own_thresholds_and_a_small_one_is_named():
    site = np.array(["a"] * 2000 + ["b"] * 2000 + ["c"] * 20)
    rows = draw(4020, groups={"site": site})
    rule = certify_threshold(rows, max_error=0.1, by="site")
    one = rule.certificate
    assert not one.certified
    assert one.threshold is None
    assert [one.groups[name].certified for name in "abc"] == [True, True, False]
    assert "accepted rows are needed" in one.groups["c"].describe()
    assert not rule(rows)[site == "c"].any()
    assert rule(rows).sum() == one.n_accepted


def test_a_group_that_accepts_everything_passes_its_risk_on():
    site = np.repeat(["a", "b"], 1000)
    confidence = np.linspace(0.5, 1, 2000)
    right = np.ones(2000, int)
    right[1000 : 1000 + 55] = 0
    rows = Predictions(
        predicted=np.ones(2000, int), confidence=confidence, labels=right, groups={"site": site}
    )
    found = certify_threshold(rows, max_error=0.07, by="site").certificate.groups
    single = certify_threshold(rows.take(site == "b"), max_error=0.07).certificate
    assert found["a"].coverage == 1
    assert found["b"].threshold == single.threshold


def test_one_threshold_for_all_groups_holds_in_each():
    site = np.array(["a", "b"])[np.random.default_rng(7).integers(0, 2, 4000)]
    rows = draw(4000, groups={"site": site})
    rule = certify_threshold(rows, max_error=0.1, by="site", shared=True)
    accepted = rule(rows)
    assert rule.certificate.certified
    for name in "ab":
        kept = accepted & (site == name)
        assert binom.cdf((~rows.correct[kept]).sum(), kept.sum(), 0.1) <= 0.05


def test_least_error_at_a_coverage():
    broken = 0
    for seed in range(200):
        one = certify_threshold(draw(300, seed), min_coverage=0.8, confidence=0.9).certificate
        assert one.coverage >= 0.8
        assert one.error_bound > one.observed_error
        broken += true_error(one.threshold) > one.error_bound
    assert broken <= binom.ppf(0.999, 200, 0.1)


def test_nothing_certifiable_has_no_threshold_but_the_best_bound():
    rule = certify_threshold(draw(412), max_error=0.02)
    one = rule.certificate
    assert (one.certified, one.threshold, one.n_accepted) == (False, None, 0)
    assert 0.02 < one.error_bound < 0.3
    text = one.describe()
    assert text.startswith(
        "No threshold keeps errors at or below 2% with 95% confidence on these 412 rows; the best"
    )
    assert "labelled rows might be enough" in text
    assert certify_threshold(draw(412), max_error=one.error_bound * 1.001).certificate.certified
    assert not rule(draw(10)).any()


def test_number_of_rows_that_might_be_enough_is_enough_about_half_the_time():
    needed = certify_threshold(draw(412), max_error=0.03).certificate.shortfall.n_needed
    found = [
        certify_threshold(draw(4 * needed, seed), max_error=0.03).certificate.certified for seed in range(5)
    ]
    assert sum(found) >= 3


def test_too_few_rows_are_named():
    text = certify_threshold(draw(58), max_error=0.05).certificate.describe()
    assert "even without a mistake, 59 accepted rows are needed" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_error": 0}, "No number of rows shows that a model is never wrong"),
        ({"max_error": 5}, "5% is 0.05"),
        ({"min_coverage": 80}, "80% is 0.8"),
        ({"max_error": 0.1, "confidence": 95}, "95% is 0.95"),
    ],
)
def test_impossible_settings(options, message):
    with pytest.raises(ValueError, match=message):
        certify_threshold(draw(100), **options)


def test_settings_that_exclude_each_other():
    with pytest.raises(TypeError, match="and not both"):
        certify_threshold(draw(100), max_error=0.1, min_coverage=0.5)
    with pytest.raises(TypeError, match="requires `by`"):
        certify_threshold(draw(100), max_error=0.1, shared=True)
    with pytest.raises(DataError, match="Columns: none"):
        certify_threshold(draw(100), max_error=0.1, by="site")


def test_training_rows_and_unlabelled_rows_are_refused():
    with pytest.raises(SplitError, match="'train'"):
        certify_threshold(draw(100, split="train"), max_error=0.1)
    with pytest.raises(DataError, match="no labels"):
        certify_threshold(Predictions(probs=[0.9, 0.2]), max_error=0.1)


def test_groups_that_prevent_one_threshold_for_all_are_named():
    site = np.array(["a"] * 2000 + ["b"] * 2000 + ["c"] * 34)
    rule = certify_threshold(draw(4034, groups={"site": site}), max_error=0.1, by="site", shared=True)
    one = rule.certificate
    first, second = one.describe().splitlines()
    assert (
        first
        == "No threshold keeps errors at or below 10% in every group with 95% confidence on these 4,034 rows."
    )
    assert second.startswith("c: No threshold keeps errors at or below 10%")
    assert second.endswith("labelled rows might be enough if the observed error is the true one.")
    assert not any(group.certified for group in one.groups.values())
    assert not rule(draw(4034, groups={"site": site})).any()


def test_many_groups_are_counted():
    group = np.array(["large"] * 1000 + [f"small {number}" for number in range(100)])
    text = certify_threshold(draw(1100, groups={"id": group}), max_error=0.2, by="id").certificate.describe()
    lines = text.splitlines()
    assert len(lines) == 21
    assert lines[0].startswith("large: Accept")
    assert "on this row: even without a mistake" in lines[1]
    assert lines[-1] == "81 other groups: 0 with a threshold."


def test_an_empty_group_and_the_entropy_have_names():
    rows = draw(2000, groups={"site": np.array(["", "a"])[np.arange(2000) % 2]})
    assert "(empty): Accept" in certify_threshold(rows, max_error=0.2, by="site").certificate.describe()
    text = certify_threshold(draw(2000), max_error=0.1).certificate.describe("entropy")
    assert text.startswith("Accept predictions with 1 - normalized entropy at least 0.")


@pytest.mark.parametrize("factor", [0.01, 0.3, 100.1])
def test_the_unit_of_weights_means_nothing(factor):
    weights = np.random.default_rng(8).uniform(0.5, 1.5, 2000)
    one, two = (
        certify_threshold(draw(2000, slope=0.5, weights=scale * weights), max_error=0.1).certificate
        for scale in (1.0, factor)
    )
    assert one.threshold == two.threshold
    assert (one.n, two.n) == (2000, 2000)
    assert two.coverage_low == pytest.approx(one.coverage_low)
    assert two.coverage_low < two.coverage < two.coverage_high
    equal = certify_threshold(draw(2000, weights=np.full(2000, factor)), max_error=0.15).certificate
    assert equal == certify_threshold(draw(2000), max_error=0.15).certificate


def test_few_heavy_rows_widen_the_interval_of_the_coverage():
    weights = np.where(np.arange(2000) % 20 == 0, 8.5, 1.5)
    plain, heavy = (
        certify_threshold(draw(2000, weights=one), min_coverage=0.5).certificate for one in (None, weights)
    )
    assert heavy.coverage_high - heavy.coverage_low > 1.2 * (plain.coverage_high - plain.coverage_low)
    text = certify_threshold(draw(2000, weights=weights), max_error=0.02).certificate.describe()
    assert text.endswith("Rows with such weights need more labels than rows without.")
    assert "on these 2,000 rows" in text


def test_only_mistakes_promise_nothing_at_a_coverage():
    rows = Predictions(confidence=np.full(30, 0.9), correct=np.zeros(30, int))
    text = certify_threshold(rows, min_coverage=0.8).certificate.describe()
    assert (
        text
        == "No error limit below 100% can be promised at this coverage with 95% confidence on these 30 rows."
    )


def test_names_from_files_cannot_control_the_terminal():
    site = np.array(["\x1b[2J", "a\nb"])[np.arange(2000) % 2]
    rows = draw(2000, groups={"site": site})
    rule = certify_threshold(rows, max_error=0.2, by="site")
    checked = rule.check(draw(2000, seed=1, groups={"site": site}))
    for text in (rule.certificate.describe(), checked.describe()):
        assert "\x1b" not in text
        assert "a\\nb: " in text
