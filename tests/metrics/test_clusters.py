"""Clusters of dependent rows: which there are, their design effect, and draws of them."""

import numpy as np
import pytest

from equipoise import Predictions, score
from equipoise.core.choices import ScoreSettings
from equipoise.core.errors import DataError, SpecError
from equipoise.metrics import CalibrationState
from equipoise.metrics.clusters import ClusterDraws, find_clusters, sum_clusters, sums_of_images
from equipoise.metrics.row_draws import draw_rows, units_of_clusters
from helpers.cluster_trials import Design, draw_models


def rows(n=300, seed=0, **more):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    return Predictions(logits=1.5 * logits, labels=labels, **more)


def draws_of(predictions, clusters, **more):
    state = CalibrationState.of(predictions)
    sums = sum_clusters(predictions, clusters, ScoreSettings(), where="score")
    return ClusterDraws(sums, state, ScoreSettings(**{"n_resamples": 400, **more}))


@pytest.mark.parametrize(
    "values", [[7, 7, -2, 30], ["b", "b", "a", "c"], np.array(["b", "b", "a", "c"], dtype=object)]
)
def test_values_of_any_kind_are_numbered_from_zero(values):
    found = find_clusters(values, rows(4), where="score")
    assert found.name == ""
    assert found.codes.tolist() == [1, 1, 0, 2]


def test_a_column_is_found_in_whichever_predictions_have_it():
    with_column = rows(4, groups={"author": ["x", "y", "x", "z"]})
    found = find_clusters("author", rows(4), with_column, where="compare")
    assert (found.name, found.codes.tolist()) == ("author", [0, 1, 0, 2])


def test_what_is_wrong_with_clusters_is_one_sentence():
    with pytest.raises(
        DataError, match=r"score: `clusters` must be one value per row, shape \(4,\), got shape \(3,\)"
    ):
        find_clusters([1, 2, 3], rows(4), where="score")
    with pytest.raises(DataError, match=r"score: intervals need several clusters, got 1 in 4 rows"):
        find_clusters([1, 1, 1, 1], rows(4), where="score")
    with pytest.raises(DataError, match=r"intervals need several clusters, got 1"):
        find_clusters([1, 1, 2, 3], rows(4, weights=[1.0, 2.0, 0.0, 0.0]), where="score")
    with pytest.raises(SpecError, match=r"no column of clusters 'autor'; did you mean 'author'"):
        find_clusters("autor", rows(4, groups={"author": list("xyxz")}), where="score")
    with pytest.raises(SpecError, match=r"no column of clusters 'author'; the predictions have no groups"):
        find_clusters("author", rows(4), where="score")
    parts = [rows(4, groups={"author": list(names)}) for names in ("xyxz", "xyzx")]
    with pytest.raises(DataError, match=r"must be the same in all predictions"):
        find_clusters("author", *parts, where="compare")


def test_rows_that_are_repeated_have_a_design_effect_of_their_number():
    once = rows(200)
    repeated = once.take(np.repeat(np.arange(200), 7))
    cluster = np.repeat(np.arange(200), 7)
    assert draws_of(repeated, cluster).summary.design_effect == pytest.approx(7 * 200 / 199)
    wide = score(repeated, clusters=cluster)["accuracy"]
    alone = score(once)["accuracy"]
    assert wide.value == alone.value
    assert wide.high - wide.low == pytest.approx(alone.high - alone.low, rel=0.15)


def test_independent_rows_have_a_design_effect_of_one():
    predictions = rows(4000)
    cluster = np.random.default_rng(1).integers(400, size=4000)
    assert draws_of(predictions, cluster).summary.design_effect == pytest.approx(1, abs=0.25)
    clustered, plain = score(predictions, clusters=cluster), score(predictions)
    for key in plain:
        assert clustered[key].value == plain[key].value
        wide, narrow = (card[key].high - card[key].low for card in (clustered, plain))
        assert wide == pytest.approx(narrow, rel=0.4), key


def test_weights_count_like_copies_of_rows():
    predictions, cluster = rows(300), np.arange(300) // 10
    weight = np.random.default_rng(2).integers(1, 4, size=300)
    copies = np.repeat(np.arange(300), weight)
    weighted = score(predictions.with_weights(weight.astype(float)), clusters=cluster)
    copied = score(predictions.take(copies), clusters=cluster[copies])
    for key in ("accuracy", "nll", "brier", "ece"):
        assert weighted[key].value == pytest.approx(copied[key].value)
        # Copies make rows of a cluster a little more alike, which counts where clusters are uneven.
        assert weighted[key][1:3] == pytest.approx(copied[key][1:3], rel=0.02), key


def test_clusters_of_weight_zero_do_not_count():
    predictions, cluster = rows(300), np.arange(300) // 10
    weight = np.where(cluster < 20, 1.0, 0.0)
    kept = score(predictions.take(slice(0, 200)), clusters=cluster[:200])
    found = score(predictions.with_weights(weight), clusters=cluster)
    for key in ("accuracy", "nll", "ece"):
        assert found[key][:3] == pytest.approx(kept[key][:3]), key


def test_the_order_of_rows_does_not_matter():
    predictions, cluster = rows(300), np.arange(300) // 10
    order = np.random.default_rng(3).permutation(300)
    one = draw_rows(predictions, clusters=cluster, settings=ScoreSettings(n_resamples=50))
    two = draw_rows(predictions.take(order), clusters=cluster[order], settings=ScoreSettings(n_resamples=50))
    assert two.plan == one.plan
    assert np.allclose(two.draws["nll"], one.draws["nll"], atol=1e-6)


@pytest.mark.parametrize(
    ("sizes", "least", "most"),
    [([10] * 20, 20, 20), ([1] * 20, 20, 20), ([500] + [1] * 99, 2, 2), (range(1, 41), 20, 32)],
)
def test_uneven_clusters_count_as_fewer(sizes, least, most):
    found = units_of_clusters(np.repeat(np.arange(len(sizes)), sizes), None, 0)
    assert found.n_resampled == len(sizes)
    assert least <= found.n_units <= most


def test_many_clusters_are_resampled_in_groups():
    predictions = rows(20_000)
    cluster = np.arange(20_000) // 2
    found = draw_rows(predictions, clusters=cluster, settings=ScoreSettings(n_resamples=100))
    assert found.plan.n_units == 4096
    assert found.draws["accuracy"].std() == pytest.approx(
        np.sqrt(predictions.correct.var() / 20_000), rel=0.3
    )
    assert score(predictions, clusters=cluster, n_resamples=100).clusters.n_clusters == 10_000


def test_sums_of_images_are_those_of_rows():
    predictions, image = rows(300), np.arange(300) // 60
    of_rows = sum_clusters(predictions, image, ScoreSettings(), where="score")
    empty = np.zeros((1, *of_rows.cells.shape[1:]))
    found = sums_of_images(np.concatenate([empty, of_rows.cells]), seed=0)
    assert (found.n_clusters, found.n_effective) == (5, 5)
    assert np.allclose(found.cells, of_rows.cells)
    assert sums_of_images(np.concatenate([empty, of_rows.cells[:1]]), seed=0) is None


def test_few_clusters_cannot_show_miscalibration():
    predictions = Predictions(probs=[[0.99, 0.01]] * 400, labels=[0, 1] * 200)
    few = score(predictions, clusters=np.arange(400) // 100)
    assert few.consistency.p_value > 0.05
    assert any("4 clusters are too few" in note for note in few.notes)
    more = score(predictions, clusters=np.arange(400) // 20)
    assert more.consistency.p_value < 0.01
    assert not any("too few" in note for note in more.notes)


def test_the_same_seed_gives_the_same_draws():
    first, _ = draw_models(np.random.default_rng(0), Design("", (30,) * 12))
    one, two = (score(first, clusters="cluster", n_resamples=100, seed=4) for _ in range(2))
    assert one.to_dict() == two.to_dict()
    assert score(first, clusters="cluster", n_resamples=100, seed=5)["ece"] != one["ece"]


def test_top1_predictions_have_clusters_too():
    first, _ = draw_models(np.random.default_rng(0), Design("", (30,) * 12))
    top1 = Predictions(
        predicted=first.predicted, confidence=first.confidence, labels=first.labels, groups=first.groups
    )
    whole, alone = (score(part, clusters="cluster", n_resamples=100) for part in (first, top1))
    assert "nll" not in alone
    assert set(alone) - set(whole) == {"correct_nll", "correct_brier"}
    for key in set(alone) & set(whole):
        assert alone[key][:3] == pytest.approx(whole[key][:3]), key
