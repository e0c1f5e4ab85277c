"""States that share rows do not merge, however the rows were summed; different rows that look alike do."""

import numpy as np
import pytest

from equipoise import Predictions, read_predictions, write_predictions
from equipoise.core.errors import DataError
from equipoise.core.row_identity import RowIdentity
from equipoise.evaluate import AuditState, read_audit_state, write_audit_state
from equipoise.evaluate.audit_state import merge_states
from equipoise.kernels.dispatch import use_backend


def rows(n=900, seed=0, k=4, **extra):
    generator = np.random.default_rng(seed)
    logits = 2 * generator.normal(size=(n, k))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    groups = {"site": np.array(["north", "south"])[np.arange(n) % 2]}
    return Predictions(**{"logits": logits, "labels": labels, "groups": groups} | extra)


def rounded(n, seed, digits=2):
    """Top-1 predictions whose confidences are rounded, so that different samples look the same."""
    generator = np.random.default_rng(seed)
    confidence = np.round(0.5 + 0.5 * generator.beta(4, 1, n), digits)
    predicted = generator.integers(0, 3, n)
    labels = np.where(generator.random(n) < confidence, predicted, (predicted + 1) % 3)
    return Predictions(labels=labels, predicted=predicted, confidence=confidence, n_classes=3)


def saturated(n, seed):
    """Half of the rows have probability one."""
    generator = np.random.default_rng(seed)
    probs = np.where(generator.random(n) < 0.5, 1.0, generator.random(n))
    return Predictions(probs=probs, labels=(generator.random(n) < probs).astype(int))


def refused(*states):
    with pytest.raises(DataError, match="already, and would count twice"):
        merge_states({str(place): state for place, state in enumerate(states)})


def test_a_merged_state_does_not_merge_with_its_parts(tmp_path):
    monday, tuesday, wednesday = (AuditState.of(rows(seed=seed)) for seed in range(3))
    week = merge_states({"mon": monday, "tue": tuesday})
    assert (week.n_samples, monday.n_samples) == (1800, 900)
    write_audit_state(week, tmp_path / "week.json")
    back = read_audit_state(tmp_path / "week.json")
    with pytest.raises(DataError, match="mon: its rows are in week already"):
        merge_states({"week": back, "mon": monday})
    with pytest.raises(DataError, match="week: some of its rows are in tue already"):
        merge_states({"tue": tuesday, "week": back})
    with pytest.raises(DataError, match=r"AuditState.merge: its rows are in this state already"):
        back.merge(tuesday)
    assert merge_states({"week": back, "wed": wednesday}).n_samples == 2700


def test_the_way_rows_are_summed_does_not_hide_them():
    """Groups, chunks, order, precision, file format and backend are no part of the identity."""
    whole = rows(600)
    state = AuditState.of(whole)
    without_groups = Predictions(logits=whole.logits, labels=whole.labels)
    single = Predictions(
        logits=whole.logits.astype(np.float32), labels=whole.labels, groups=dict(whole.groups)
    )
    identities = []
    for same in (
        AuditState.of(without_groups, n_bins=7),
        AuditState.of(whole.blocks(77)),
        AuditState.of(whole.take(np.random.default_rng(0).permutation(600))),
        AuditState.of(single),
    ):
        identities.append(same.identity.sources)
        assert same.identity.overlap(state.identity) == "its rows"
    with use_backend("fallback"):
        refused(AuditState.of(whole), state)
    assert len(set(map(frozenset, identities))) == 1


def test_files_summed_as_one_are_those_summed_one_by_one():
    parts = [rows(6, seed=seed) for seed in range(3)]
    single = [AuditState.of(part) for part in parts]
    merged = merge_states(dict(zip("abc", single, strict=True)))
    refused(AuditState.of(iter(parts)), merged)


def test_files_that_share_some_rows_do_not_merge():
    whole = rows(3000)
    refused(AuditState.of(whole.take(slice(0, 2000))), AuditState.of(whole.take(slice(1900, None))))
    refused(AuditState.of(whole), AuditState.of(whole.take(slice(0, 20))))


def test_a_large_state_is_recognized_by_a_sample():
    whole = rows(60_000, k=2, groups={})
    half = [AuditState.of(whole.take(slice(start, start + 31_000))) for start in (0, 29_000)]
    refused(*half)
    apart = [AuditState.of(whole.take(slice(start, start + 30_000))) for start in (0, 30_000)]
    assert merge_states(dict(zip("ab", apart, strict=True))).n_samples == 60_000


@pytest.mark.parametrize("make", [rounded, saturated])
@pytest.mark.parametrize("n", [20, 100, 1000, 20_000])
def test_different_rows_that_look_alike_merge(make, n):
    days = {str(seed): AuditState.of(make(n, seed)) for seed in range(1, 9)}
    assert merge_states(days).n_samples == 8 * n


def test_rounded_rows_of_the_same_file_do_not_merge():
    whole = rounded(1000, 1)
    refused(AuditState.of(whole), AuditState.of(whole.take(np.arange(1000)[::-1])))


def test_ids_decide_where_there_are_some():
    same = rows(40, groups={}).with_scores(logits=np.zeros((40, 4)))
    arguments = {"logits": np.zeros((40, 4)), "labels": same.labels}
    first, second, third = (
        AuditState.of(Predictions(**arguments, ids=np.arange(start, start + 40))) for start in (0, 40, 79)
    )
    assert merge_states({"a": first, "b": second}).n_samples == 80
    with pytest.raises(DataError, match="c: 1 of its ids are in b already"):
        merge_states({"a": first, "b": second, "c": third})


def test_a_file_read_with_ids_is_the_file_read_without(tmp_path):
    given = rows(50, groups={})
    np.savez(tmp_path / "a.npz", logits=given.logits, labels=given.labels, row=np.arange(50))
    with_ids = read_predictions(tmp_path / "a.npz", ids="row")
    refused(AuditState.of(with_ids), AuditState.of(read_predictions(tmp_path / "a.npz")))


def test_a_calibrated_copy_holds_the_same_rows(tmp_path):
    given = rows(50, groups={})
    write_predictions(given, tmp_path / "a.npz")
    copied = given.with_scores(logits=given.logits / 2)
    refused(AuditState.of(given), AuditState.of(copied))


def test_parts_of_one_source_are_merged_without_a_look():
    """Files of a folder that are known to be different may look alike, as those with a single rounded row do."""
    one = AuditState.of(rounded(1, 0))
    one.merge(AuditState.of(rounded(1, 0)), same_source=True)
    assert one.identity.sources == AuditState.of([rounded(1, 0)] * 2).identity.sources


def test_the_identity_is_bounded():
    identity = RowIdentity()
    for seed in range(5):
        identity.update(rows(10_000, seed, k=2, groups={}))
    assert sum(array.nbytes for array in identity.parts()[1].values()) < 200_000
    assert identity.n_rows == 50_000
