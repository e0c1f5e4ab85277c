"""Sums of an audit: merged in any way they say the same, and a file of them is whole or refused."""

import copy
import json
import pickle
import zipfile

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.core.errors import DataError
from equipoise.evaluate import AuditState, audit, compare_states, read_audit_state, write_audit_state
from equipoise.evaluate.cautions import InputDiagnostics
from equipoise.metrics import CalibrationState


def rows(n=900, seed=0, *, temperature=0.6, **extra):
    generator = np.random.default_rng(seed)
    logits = 2 * generator.normal(size=(n, 4))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    groups = {"site": np.array(["north", "south", "east"])[generator.integers(0, 3, n)]}
    return Predictions(**{"logits": logits / temperature, "labels": labels, "groups": groups} | extra)


def top1(n=300, seed=1):
    generator = np.random.default_rng(seed)
    confidence = generator.choice([0.5, 0.7, 0.9], n)
    predicted = generator.integers(0, 4, n)
    labels = np.where(generator.random(n) < confidence, predicted, (predicted + 1) % 4)
    return Predictions(labels=labels, predicted=predicted, confidence=confidence, n_classes=4)


def same(one, two):
    """Both say the same, up to the order of additions."""
    first, second = one.to_dict(), two.to_dict()
    assert [part["name"] for part in first["classes"]] == [part["name"] for part in second["classes"]]
    for key in ("classes", "groups", "risk", "scores", "consistency", "cautions", "notes"):
        assert_close(first[key], second[key])


def assert_close(one, two):
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            assert_close(one[key], two[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two)
        for left, right in zip(one, two, strict=True):
            assert_close(left, right)
    elif isinstance(one, float):
        assert one == pytest.approx(two, rel=1e-9, abs=1e-12)
    else:
        assert one == two


@pytest.mark.parametrize("make", [rows, top1])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_parts_merged_in_any_order_say_what_one_pass_says(make, order):
    whole = make()
    parts = [whole.take(slice(start, start + 300 if start < 600 else None)) for start in (0, 300, 600)]
    parts = [part for part in parts if len(part)]
    expected = audit(iter(parts), n_resamples=50)
    states = [AuditState.of(parts[place]) for place in order if place < len(parts)]
    total = states[0]
    for state in states[1:]:
        total.merge(state)
    found = audit(total, n_resamples=50)
    if len(parts) > 1:
        same(found, expected)
    assert found.card.n_samples == len(whole)


def test_weights_and_signs_of_mistakes_merge_too():
    whole = rows(weights=np.linspace(0.1, 3, 900))
    shifted = Predictions(logits=whole.logits, labels=(whole.labels + 1) % 4)
    shares = Predictions(logits=100 * whole.probs, labels=whole.labels)
    for judged, key in (
        (whole, None),
        (shifted, "labels_off_by_one"),
        (Predictions(logits=whole.probs, labels=whole.labels), "logits_are_probs"),
        (shares, "logits_are_percentages"),
    ):
        parts = [judged.take(slice(0, 400)), judged.take(slice(400, None))]
        total = AuditState.of(parts[0])
        total.merge(AuditState.of(parts[1]))
        same(audit(total, n_resamples=20), audit(iter(parts), n_resamples=20))
        if key:
            assert key in [caution.key for caution in audit(total, n_resamples=20).cautions]


@pytest.mark.parametrize("ending", ["state", "npz", "json"])
@pytest.mark.parametrize("make", [rows, top1])
def test_a_file_gives_back_every_bit(tmp_path, ending, make):
    state = AuditState.of(make())
    write_audit_state(state, tmp_path / f"a.{ending}")
    back = read_audit_state(tmp_path / f"a.{ending}")
    assert audit(back, n_resamples=30).to_dict() == audit(state, n_resamples=30).to_dict()


def test_every_sign_of_a_mistake_is_kept(tmp_path):
    """What an audit gathers and a file forgets would be a caution that is lost on the way."""
    gathered, kept = InputDiagnostics(), InputDiagnostics()
    gathered.update(rows())
    kept.fill(*gathered.parts())
    assert vars(kept).keys() == vars(gathered).keys()
    for name, value in vars(gathered).items():
        assert np.array_equal(getattr(kept, name), value), name


def test_pickle_and_deepcopy_keep_everything():
    state = AuditState.of(rows())
    expected = audit(state, n_resamples=20).to_dict()
    for back in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
        assert audit(back, n_resamples=20).to_dict() == expected


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"n_bins": 10}, "n_bins"),
        ({"by": []}, "groups"),
        ({"closed": "left"}, "closed"),
    ],
)
def test_other_settings_do_not_merge(other, word):
    with pytest.raises(DataError, match=f"{word} must be the same"):
        AuditState.of(rows()).merge(AuditState.of(rows(seed=1), **other))


def test_other_predictions_do_not_merge():
    with pytest.raises(DataError, match="split must be the same"):
        AuditState.of(rows()).merge(AuditState.of(rows(split="calib")))
    with pytest.raises(DataError, match="class names must be the same"):
        AuditState.of(rows()).merge(AuditState.of(rows(class_names=["a", "b", "c", "d"])))


def test_a_column_that_grows_too_wide_is_left_out_unless_asked_for():
    def part(start, **options):
        names = np.arange(start, start + 700).astype(str)
        return AuditState.of(rows(700, start, groups={"user": names}), **options)

    total = part(0)
    total.merge(part(700))
    assert [caution.key for caution in audit(total, n_resamples=10).cautions] == ["too_many_groups"]
    total.merge(part(1400))
    assert total.groups == {}
    asked = part(0, by=["user"])
    with pytest.raises(DataError, match="more than 1000 different values"):
        asked.merge(part(700, by=["user"]))


def damaged(path):
    """Yield ways to damage a saved state."""
    content = path.read_bytes()
    yield content[: len(content) // 2]
    yield b""
    yield b"no state at all"
    if path.suffix == ".json":
        told = json.loads(content)
        for change in (
            lambda c: c["arrays"]["calibration.cells"]["values"].__setitem__(0, 7.0),
            lambda c: c.__setitem__("version", 99),
            lambda c: c.__setitem__("format", "other"),
            lambda c: c["plain"].__setitem__("closed", "left"),
            lambda c: c["arrays"].pop("classes.rows"),
            lambda c: c["arrays"]["classes.rows"].__setitem__("type", "|O"),
            lambda c: c.__setitem__("arrays", 3),
        ):
            changed = copy.deepcopy(told)
            change(changed)
            yield json.dumps(changed).encode()


@pytest.mark.parametrize("ending", ["state", "json"])
def test_what_is_damaged_is_refused(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    write_audit_state(AuditState.of(rows(60)), path)
    for content in list(damaged(path)):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"^a\."):
            read_audit_state(path)


@pytest.mark.slow
def test_an_archive_that_unfolds_to_too_much_is_refused(tmp_path):
    path = tmp_path / "bomb.state"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("equipoise.json", " " * (300 << 20))
    with pytest.raises(DataError, match="would grow"):
        read_audit_state(path)


def state_of(n, seed, temperature=1.0):
    return AuditState.of(rows(n, seed, temperature=temperature)).calibration


@pytest.mark.slow
def test_few_rows_are_not_called_worse_for_being_few():
    """Chance alone gives 300 rows several times the calibration error of 20 000."""
    found = [
        compare_states(state_of(20_000, 1), state_of(300, seed), n_resamples=200) for seed in range(2, 14)
    ]
    raised = [one.of("ece").after - one.of("ece").before for one in found]
    assert min(raised) > 0.01
    assert sum(one.of("ece").verdict != "tie" for one in found) <= 2
    assert abs(np.mean([one.of("ece").difference for one in found])) < 0.5 * np.mean(raised)


def test_a_model_that_got_worse_is_called_worse():
    found = compare_states(state_of(5000, 1), state_of(2000, 2, temperature=0.5))
    for metric in ("ece", "nll", "brier", "classwise_ece"):
        row = found.of(metric)
        assert row.verdict == "worse"
        assert row.low > 0
    assert found.of("accuracy").verdict == "tie"
    back = compare_states(state_of(2000, 2, temperature=0.5), state_of(5000, 1))
    assert back.of("ece").verdict == "better"


def test_states_of_other_bins_are_not_compared():
    with pytest.raises(DataError, match="same bins and classes"):
        compare_states(state_of(50, 1), CalibrationState.of(rows(50), n_bins=10))
