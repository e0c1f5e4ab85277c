"""Row identity and the rule against leaks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import Rows, SplitError
from equipoise.core.rows import check_disjoint, unchecked_rows


def values(seed, n=300, k=5):
    generator = np.random.default_rng(seed)
    return Rows.from_values(generator.normal(size=(n, k)), generator.integers(0, k, n))


@given(st.sets(st.text(max_size=8).filter(lambda s: not s.endswith("\0"))), st.sets(st.text(max_size=8)))
def test_shared_ids_are_the_intersection(one, two):
    two = {text.rstrip("\0") for text in two}
    rows = [Rows.from_ids(np.array(sorted(ids), dtype=np.str_)) for ids in (one, two)]
    assert rows[0].shared(rows[1]) == len(one & two)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_integers_and_their_text_are_the_same_ids(ids):
    numbers = Rows.from_ids(np.array(ids, dtype=np.int64))
    texts = Rows.from_ids(np.array([str(value) for value in ids], dtype=np.str_))
    np.testing.assert_array_equal(numbers.hashes, texts.hashes)


def test_width_and_byte_order_do_not_matter():
    ids = ["a", "bc"]
    for dtype in ("<U2", "<U9", ">U5"):
        np.testing.assert_array_equal(Rows.from_ids(np.array(ids, dtype)).hashes, Rows.from_ids(ids).hashes)
    for dtype in (np.int8, np.uint64, ">i4"):
        np.testing.assert_array_equal(
            Rows.from_ids(np.array([3, 4], dtype)).hashes, Rows.from_ids([3, 4]).hashes
        )


def test_chunks_hash_as_the_whole(monkeypatch):
    scores, labels = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50)
    whole, ids = Rows.from_values(scores, labels), Rows.from_ids(labels)
    monkeypatch.setattr("equipoise.core.rows._CHUNK", 7)
    np.testing.assert_array_equal(Rows.from_values(scores, labels).hashes, whole.hashes)
    np.testing.assert_array_equal(Rows.from_ids(labels).hashes, ids.hashes)


def test_hashes_do_not_collide():
    assert len(np.unique(Rows.from_ids(np.arange(200_000)).hashes)) == 200_000
    assert len(np.unique(values(0, n=100_000).hashes)) == 100_000


@pytest.mark.parametrize("ids", [[0.5], [[1]], [None], [b"a"]])
def test_ids_must_be_integers_or_text(ids):
    with pytest.raises(TypeError, match="integers or text"):
        Rows.from_ids(ids)


def test_named_rows_must_not_share_one():
    fitted = Rows.from_ids(np.arange(1000))
    check_disjoint(Rows.from_ids(np.arange(1000, 2000)), fitted, where="score")
    with pytest.raises(SplitError, match=r"score: 1 of 1000 rows were used to fit.*Fit on 'calib'"):
        check_disjoint(Rows.from_ids(np.arange(999, 1999)), fitted, where="score")


def test_an_id_that_occurs_twice_still_counts():
    with pytest.raises(SplitError, match="2 of 3 rows"):
        check_disjoint(Rows.from_ids([1, 1, 2]), Rows.from_ids([1, 1, 3]), where="score")


def test_values_may_coincide_in_one_of_a_hundred():
    judged = values(0)
    few = Rows(np.concatenate([judged.hashes[:3], values(1).hashes]), named=False)
    many = Rows(np.concatenate([judged.hashes[:4], values(1).hashes]), named=False)
    check_disjoint(judged, few, where="score")
    with pytest.raises(SplitError, match="4 of 300 rows"):
        check_disjoint(judged, many, where="score")


def test_saturated_rows_are_no_evidence():
    scores = np.tile([1.0, 0.0], (500, 1))
    one, two = (Rows.from_values(scores[:n], np.zeros(n, int)) for n in (300, 500))
    check_disjoint(one, two, where="score")


def test_the_same_rows_are_caught_even_if_saturated():
    rows = Rows.from_values(np.ones((200, 1)), np.zeros(200, int))
    with pytest.raises(SplitError, match="200 of 200"):
        check_disjoint(rows, Rows(rows.hashes.copy(), named=False), where="score")


def test_ids_and_values_cannot_be_compared():
    judged = values(0)
    check_disjoint(judged, Rows(judged.hashes, named=True), where="score")


def test_union_keeps_what_can_be_compared():
    named, unnamed = Rows.from_ids([1, 2]), values(0, n=2)
    assert named.union(None) is named
    assert named.union(unnamed) is named
    assert sorted(named.union(Rows.from_ids([3])).hashes) == sorted(Rows.from_ids([1, 2, 3]).hashes)


def test_fingerprint_is_stable_over_time():
    """A literal: calibrators keep fingerprints in files, so the hash must never change unnoticed."""
    assert Rows.from_ids(["a", "b"]).fingerprint == Rows.from_ids(["b", "a"]).fingerprint
    assert Rows.from_ids(["a", "b"]).fingerprint == "b36de564e1f93af762c1dca8"


def test_a_sketch_finds_its_share_of_what_is_shared():
    fitted = Rows.from_ids(np.arange(100_000)).sketch(10_000)
    assert len(fitted.hashes) == 10_000
    shared = Rows.from_ids(np.arange(90_000, 110_000)).shared(fitted)
    assert 850 < shared < 1150  # a tenth of the ten thousand
    assert fitted.shared(Rows.from_ids(np.arange(100_000, 200_000))) == 0
    assert fitted.sketch(500).shared(fitted) == 500


def test_the_union_keeps_a_row_once_and_the_smaller_sketch():
    one, two = values(0), values(1)
    both = one.union(two).union(one)
    assert len(both.hashes) == 600
    assert both.shared(one) == 300  # rows known by their values count only if they occur once
    assert one.union(two.sketch(100)).below == two.sketch(100).below
    nothing = Rows(np.empty(0, np.uint64), named=True)
    assert nothing.union(one) is one
    assert one.union(nothing) is one


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        "x",
        {},
        {"named": 1, "hashes": ""},
        {"named": True, "hashes": "AAAA"},
        {"named": True, "hashes": 3},
        {"named": True, "hashes": "", "below": 0},
        {"named": True, "hashes": "", "below": True},
        {"named": True, "hashes": "", "below": 2**65},
    ],
)
def test_damaged_rows_are_refused(content):
    with pytest.raises(ValueError, match="rows must be hashes in base64"):
        Rows.unpacked(content)


def rounded(seed, n, decimals):
    generator = np.random.default_rng(seed)
    confidence = generator.beta(5, 1, n).round(decimals)
    return Rows.from_values(confidence, generator.integers(0, 2, n))


@pytest.mark.parametrize("decimals", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n", [50, 500, 2000, 8000])
def test_equal_rounded_rows_are_no_leak(decimals, n):
    """Different samples whose confidences were rounded have equal values as often as chance says."""
    for seed in range(5):
        check_disjoint(rounded(2 * seed, n, decimals), rounded(2 * seed + 1, n // 2, decimals), where="score")


@pytest.mark.parametrize("decimals", [4, 5, 6])
def test_a_leak_of_rounded_rows_is_found_where_values_hardly_repeat(decimals):
    generator = np.random.default_rng(0)
    scores = generator.dirichlet(np.ones(5), 3000).round(decimals)
    fitted, judged = (
        Rows.from_values(scores[part], np.zeros(2000, int)) for part in (slice(0, 2000), slice(1000, 3000))
    )
    with pytest.raises(SplitError, match=r"of 2000 rows were used to fit.*ids="):
        check_disjoint(judged, fitted, where="score")


def test_what_cannot_be_checked_is_said():
    coarse, fine = rounded(0, 500, 1), values(0)
    assert "rows have the values of another row" in unchecked_rows(coarse, fine)
    assert "rows of the fit have the values of another row" in unchecked_rows(fine, coarse)
    assert "the rows of the fit have ids" in unchecked_rows(fine, Rows.from_ids([1, 2]))
    assert unchecked_rows(fine, values(1)) == unchecked_rows(Rows.from_ids([1]), Rows.from_ids([2])) == ""
