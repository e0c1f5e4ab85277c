import numpy as np
import pytest

from equipoise.core import Predictions
from equipoise.core.errors import DataError
from equipoise.decisions import CostRule, least_cost_actions, read_costs


def draw(n, seed=0, factor=1.0):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, 3))
    return Predictions(logits=factor * logits, labels=(logits + rng.gumbel(size=(n, 3))).argmax(1))


def test_accept_if_the_expected_cost_of_a_mistake_is_less_than_abstaining():
    rows = Predictions(probs=[[0.91, 0.09], [0.89, 0.11], [0.9, 0.1]], labels=[0, 0, 0])
    found = least_cost_actions(rows, wrong=10, abstain=1)
    assert [found.names[one] for one in found.action][:2] == ["accept", "abstain"]
    assert found.expected[:2] == pytest.approx([0.9, 1.0])


def test_matrix_of_wrong_and_abstain_gives_the_same_costs():
    rows = draw(500)
    matrix = np.concatenate([10 * (1 - np.eye(3)), np.ones((3, 1))], axis=1)
    one = least_cost_actions(rows, wrong=10, abstain=1)
    two = least_cost_actions(rows, matrix=matrix, actions=["a", "b", "c", "abstain"])
    assert one.expected == pytest.approx(two.expected)
    assert one.realized == pytest.approx(two.realized)
    assert ((one.action == 0) == (two.action == 3)).all()


def test_no_other_action_has_less_expected_cost():
    rows, rng = draw(200), np.random.default_rng(1)
    matrix = rng.exponential(size=(3, 5))
    found = least_cost_actions(rows, matrix=matrix)
    assert found.expected == pytest.approx((rows.probs @ matrix).min(axis=1))


def test_calibrated_probabilities_keep_their_word_and_overconfident_ones_do_not():
    good = least_cost_actions(draw(4000), wrong=5, abstain=1).summary()
    assert good.gap_low < 0 < good.gap_high
    bad = least_cost_actions(draw(4000, factor=4.0), wrong=5, abstain=1).summary()
    assert bad.gap_low > 0
    assert bad.realized > good.realized
    assert sum(bad.shares.values()) == pytest.approx(1)


def test_intervals_cover_the_mean():
    matrix = 1 - np.eye(3)
    truth = least_cost_actions(draw(200_000, 99), matrix=matrix).realized.mean()
    hits = 0
    for seed in range(100):
        one = least_cost_actions(draw(200, seed), matrix=matrix).summary()
        hits += one.realized_low <= truth <= one.realized_high
    assert hits >= 86


def test_weights_repeat_rows():
    rows = draw(300)
    weights = np.random.default_rng(2).integers(1, 4, 300)
    one = least_cost_actions(rows.with_weights(weights), wrong=5, abstain=1).summary()
    repeated = rows.take(np.repeat(np.arange(300), weights))
    two = least_cost_actions(repeated, wrong=5, abstain=1).summary()
    assert one.realized == pytest.approx(two.realized)
    assert one.shares == pytest.approx(two.shares)


def test_unlabelled_rows_have_expected_costs_only():
    found = least_cost_actions(Predictions(probs=[0.9, 0.4]), wrong=5, abstain=1).summary()
    assert found.realized is None
    assert found.expected > 0


def test_wrong_arguments():
    rows = draw(10)
    with pytest.raises(DataError, match="one row per class"):
        least_cost_actions(rows, matrix=np.ones((2, 2)))
    with pytest.raises(TypeError, match="and not both"):
        least_cost_actions(rows, matrix=np.ones((3, 2)), wrong=1, abstain=1)
    with pytest.raises(TypeError, match="give `wrong` and `abstain`"):
        least_cost_actions(rows, wrong=1)
    with pytest.raises(ValueError, match="must cost more"):
        least_cost_actions(rows, wrong=1, abstain=1, right=2)
    with pytest.raises(DataError, match="finite"):
        least_cost_actions(rows, wrong=np.inf, abstain=1)
    with pytest.raises(DataError, match=r"at least 0, got -2\. For a gain, add the same number"):
        least_cost_actions(rows, matrix=[[0, -2], [1, 1], [1, 1]])
    for abstain in (-1, 11):
        with pytest.raises(DataError if abstain < 0 else ValueError, match=r"at least 0|must be between 0"):
            least_cost_actions(rows, wrong=10, abstain=abstain)
    with pytest.raises(ValueError, match=r"must end in \.json"):
        CostRule(wrong=10, abstain=1).save("costs.state")


def test_the_same_number_for_all_costs_of_a_class_changes_no_choice():
    rows, rng = draw(200), np.random.default_rng(3)
    matrix = rng.exponential(size=(3, 4))
    more = matrix + np.array([[5.0], [0.0], [2.0]])
    one, two = least_cost_actions(rows, matrix=matrix), least_cost_actions(rows, matrix=more)
    assert (one.action == two.action).all()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "", "got 0 lines and 0 actions"),
        ("a.csv", "class,pay\n", "got 0 lines and 1 actions"),
        ("a.csv", "class\ncat\n", "got 1 lines and 0 actions"),
        ("a.json", "[[1, 2]]", "expected an object with `actions` and `costs`"),
    ],
)
def test_files_that_are_no_matrix(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        read_costs(tmp_path / name)


def test_intervals_of_costs_need_two_rows():
    with pytest.raises(DataError, match="at least two rows"):
        least_cost_actions(Predictions(probs=[0.9], labels=[1]), wrong=5, abstain=1).summary()


def test_equal_costs_have_an_interval_of_one_point():
    found = least_cost_actions(Predictions(probs=[0.5] * 9, labels=[1] * 9), wrong=5, abstain=1).summary()
    assert found.realized_low == found.realized == found.realized_high == 1


@pytest.mark.parametrize(("n_wrong", "is_said"), [(0, True), (4, True), (5, False)])
def test_few_costly_rows_are_reported(n_wrong, is_said):
    rows = Predictions(probs=[0.99] * 100, labels=[0] * n_wrong + [1] * (100 - n_wrong))
    found = least_cost_actions(rows, wrong=10, abstain=1).summary()
    assert found.n_costlier == n_wrong
    assert (f"Only {n_wrong} rows cost more than expected" in found.describe()) == is_said
