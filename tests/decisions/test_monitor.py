from datetime import date

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.calibrators import PlattScaling
from equipoise.core import Predictions
from equipoise.core.errors import DataError, SplitError
from equipoise.decisions import AcceptRule, DailyMonitor, certify_threshold


def rows_of_day(seed, shift=0.0, n=200, groups=None):
    rng = np.random.default_rng(seed)
    claimed = rng.uniform(0.6, 1, n)
    right = rng.random(n) < claimed - shift
    named = {} if groups is None else {"site": np.array(list(groups))[np.arange(n) % len(groups)]}
    return Predictions(predicted=np.ones(n, int), confidence=claimed, labels=right.astype(int), groups=named)


def day(number):
    return f"2026-{1 + number // 28:02}-{1 + number % 28:02}"


def test_wealth_is_the_mean_of_likelihood_ratios():
    monitor, rows = DailyMonitor(), rows_of_day(0, n=20)
    monitor.watch(rows, day="2026-03-01")
    shifts = np.array([-1.6, -0.8, -0.4, -0.2, -0.1, -0.05, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
    wealths = []
    for shift in shifts:
        wealth = 1.0
        for p, x in zip(rows.confidence, rows.correct, strict=True):
            odds = p / (1 - p) * np.exp(shift)
            tilted = odds / (1 + odds)
            wealth *= (tilted if x else 1 - tilted) / (p if x else 1 - p)
        wealths.append(wealth)
    found = monitor.evidence["calibration"][""]
    # Half of the capital is at stake on the first day.
    assert found.log_wealth == pytest.approx(np.log(0.5 + 0.5 * np.mean(wealths)))
    again = rows_of_day(1, n=1)
    monitor.watch(again, day="2026-03-02")
    p, x = float(again.confidence[0]), float(again.correct[0])
    factor = np.exp(shifts * x) / (1 - p + p * np.exp(shifts))
    at_stake = (0.5 * np.array(wealths) + 1 / 6) * factor
    assert found.log_wealth == pytest.approx(np.log(1 / 3 + np.mean(at_stake)))


def years_with_a_false_alarm(years, days, alpha):
    """Count the years in which all monitors together ever alarm, and in which each family reaches the limit."""
    ever, families = 0, {}
    for seed in range(years):
        monitor, alarmed, reached = DailyMonitor(alpha=alpha, by=("site",), min_accuracy=0.8), False, set()
        for number in range(days):
            found = monitor.watch(
                rows_of_day(1000 * seed + number, n=60, groups="abcdefghijklmnopqrst"), day=day(number)
            )
            alarmed |= bool(found.alarms)
            reached |= {family for family, value in found.evidence.items() if value >= found.limit}
        ever += alarmed
        for family in reached:
            families[family] = families.get(family, 0) + 1
    return ever, families


def test_false_alarms_are_rare_over_many_days():
    ever, families = years_with_a_false_alarm(25, 30, 0.1)
    assert max([ever, *families.values()]) <= binom.ppf(0.999, 25, 0.1)


@pytest.mark.simulation
def test_false_alarms_of_all_monitors_together_over_a_year():
    # A longer form, without groups of its own choice, is benchmarks/watch.py.
    ever, families = years_with_a_false_alarm(200, 120, 0.1)
    assert max([ever, *families.values()]) <= binom.ppf(0.999, 200, 0.1)


def test_an_alarm_needs_the_mean_evidence_of_all_families():
    monitor, found = DailyMonitor(by=("site",)), None
    for number in range(30):
        found = monitor.watch(rows_of_day(number, 0.05, groups="ab"), day=day(number))
        assert found.mean_evidence == pytest.approx(np.mean(list(found.evidence.values())))
        assert bool(found.alarms) == (found.mean_evidence >= 20)
        assert all(one.evidence >= 20 for one in found.alarms)
    assert found.alarms


def test_a_shift_is_found_with_its_day_and_group():
    monitor = DailyMonitor(by=("site",))
    for number in range(40):
        rows = rows_of_day(number, 0.0, groups="ab")
        if number >= 10:
            bad = rows_of_day(number, 0.25, groups="ab")
            labels = np.where(rows.groups["site"] == "b", bad.labels, rows.labels)
            rows = Predictions(
                predicted=np.ones(200, int), confidence=rows.confidence, labels=labels, groups=rows.groups
            )
        found = monitor.watch(rows, day=day(number))
        if found.alarms:
            break
    assert found.alarms
    sites = [one for one in found.alarms if one.family == "site"]
    assert [one.member for one in sites] == ["b"]
    assert "2026-01-09" <= sites[0].since <= "2026-01-12"
    assert sites[0].observed < sites[0].claimed


def test_tolerance_forgives_small_deviations():
    strict, tolerant = DailyMonitor(), DailyMonitor(tolerance=0.06)
    for number in range(30):
        rows = rows_of_day(number, 0.05)
        first, second = (one.watch(rows, day=day(number)) for one in (strict, tolerant))
    assert first.alarms
    assert not second.alarms


def test_promise_of_a_rule_is_watched():
    rule = certify_threshold(rows_of_day(99, n=3000), max_error=0.1)
    monitor = DailyMonitor()
    for number in range(30):
        found = monitor.watch(rows_of_day(number, 0.15), day=day(number), rule=rule)
    assert "promise" in [one.family for one in found.alarms]
    with pytest.raises(DataError, match="rule of the first day"):
        monitor.watch(
            rows_of_day(77), day=day(31), rule=certify_threshold(rows_of_day(98, n=3000), max_error=0.12)
        )


def events(seed, n):
    """Return rows of an event whose log-odds are too high by 2, as those of a model with class weights are."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(-2, 1.5, n)
    happened = rng.random(n) < 1 / (1 + np.exp(-odds))
    return Predictions(probs=1 / (1 + np.exp(-odds - 2)), labels=happened.astype(int))


def test_the_calibrator_of_a_rule_is_applied_first():
    calib, labelled = events(1, 20_000), events(2, 3000)
    calibrator = PlattScaling().fit(calib)
    rule = certify_threshold(labelled, max_error=0.1, calibrator=calibrator)
    raw, monitor = DailyMonitor(min_accuracy=0.8), DailyMonitor(min_accuracy=0.8)
    for number in range(30):
        rows = events(100 + number, 300)
        alarms = raw.watch(rows, day=day(number)).alarms
        found = monitor.watch(rows, day=day(number), rule=rule)
    assert {one.family for one in alarms} >= {"calibration", "accuracy"}
    assert not found.alarms
    # The result is that of calibrated rows and a rule without a calibrator.
    same, plain = DailyMonitor(min_accuracy=0.8), certify_threshold(calibrator(labelled), max_error=0.1)
    for number in range(30):
        expected = same.watch(calibrator(events(100 + number, 300)), day=day(number), rule=plain)
    assert dict(found.evidence) == pytest.approx(dict(expected.evidence))
    for judge in (calib, labelled):
        with pytest.raises(SplitError, match="were used to"):
            monitor.watch(judge, day=day(31), rule=rule)


def test_alarms_name_what_has_changed():
    rule = certify_threshold(rows_of_day(99, n=3000), max_error=0.1)
    monitor = DailyMonitor(by=("site",), min_accuracy=0.75)
    for number in range(30):
        found = monitor.watch(rows_of_day(number, 0.15, groups="ab"), day=day(number), rule=rule)
    text = found.describe()
    assert "ALARM  site " in text
    assert "accepted predictions are wrong since 2026-01-01, promised at most 10.0%" in text
    assert "predictions are wrong since 2026-01-01, allowed at most 25.0%" in text
    assert "start a new STATE" in text


def test_saved_monitor_continues_as_if_it_had_not_stopped(tmp_path):
    straight, saved = (DailyMonitor(by=("site",), min_accuracy=0.7) for _ in range(2))
    for number in range(6):
        rows = rows_of_day(number, groups="ab" if number < 3 else "abc")
        straight.watch(rows, day=day(number))
        saved.watch(rows, day=day(number))
        saved.save(tmp_path / "state.json")
        saved = DailyMonitor.load(tmp_path / "state.json")
    assert saved == straight


def test_days_that_are_missed_or_doubled():
    monitor = DailyMonitor()
    monitor.watch(rows_of_day(0), day=date(2026, 3, 1))
    found = monitor.watch(rows_of_day(1), day="2026-03-04")
    assert found.missed == ("2026-03-02", "2026-03-03")
    assert "no rows for 2 days" in found.describe()
    with pytest.raises(DataError, match="was added before"):
        monitor.watch(rows_of_day(2), day="2026-03-04")
    with pytest.raises(DataError, match="rows were added on 2026-03-01"):
        monitor.watch(rows_of_day(0), day="2026-03-05")
    with pytest.raises(DataError, match="expected a day after"):
        monitor.watch(rows_of_day(3), day="2026-03-03")
    # Other forms of the same day would be added a second time.
    for other in ("yesterday", "20260304", "2026-W10-3", "2026-03-04T00:00", ""):
        with pytest.raises(DataError, match="must be a date"):
            monitor.watch(rows_of_day(3), day=other)
    assert "no rows for 1 day: 2026-03-05" in monitor.watch(rows_of_day(3), day="2026-03-06").describe()


def test_rows_of_an_earlier_day_are_found_in_another_file(tmp_path):
    first, second = rows_of_day(0), rows_of_day(1)
    monitor = DailyMonitor()
    monitor.watch(first, day="2026-03-01")
    monitor.save(tmp_path / "state.json")
    monitor = DailyMonitor.load(tmp_path / "state.json")
    both = Predictions(
        predicted=np.ones(400, int),
        confidence=np.concatenate([first.confidence, second.confidence]),
        labels=np.concatenate([first.labels, second.labels]),
    )
    with pytest.raises(DataError, match="were added on an earlier day"):
        monitor.watch(both, day="2026-03-02")
    assert "2026-03-02" not in monitor.days
    assert not monitor.watch(second, day="2026-03-02").missed


def test_an_error_leaves_the_monitor_as_it_was():
    rule = certify_threshold(rows_of_day(99, n=3000), max_error=0.1)
    monitor, same = DailyMonitor(by=("site",)), DailyMonitor(by=("site",))
    for one in (monitor, same):
        one.watch(rows_of_day(0, groups="ab"), day="2026-03-01")
    with pytest.raises(DataError, match="no column 'site'"):
        monitor.watch(rows_of_day(1), day="2026-03-02")
    with pytest.raises(DataError, match="expected no rule"):
        monitor.watch(rows_of_day(1, groups="ab"), day="2026-03-02", rule=rule)
    assert monitor == same


def test_every_column_of_groups_is_watched_once():
    with pytest.raises(TypeError, match="list of columns"):
        DailyMonitor(by="site")
    for by in (("site", "site"), ("calibration",), ("site", "promise")):
        with pytest.raises(ValueError, match="must be named once"):
            DailyMonitor(by=by)


def test_days_are_of_one_model():
    def rows(seed, names, kind="probs"):
        rng = np.random.default_rng(seed)
        probs = rng.dirichlet(np.ones(len(names)), 50)
        scores = {"probs": probs}
        if kind == "top1":
            scores = {"predicted": probs.argmax(axis=1), "confidence": probs.max(axis=1)}
        return Predictions(**scores, labels=rng.integers(0, len(names), 50), class_names=names)

    monitor = DailyMonitor()
    monitor.watch(rows(0, ["cat", "cow", "dog"]), day="2026-03-01")
    with pytest.raises(DataError, match="classes of the first day, cat, cow, dog, got bus, car, van"):
        monitor.watch(rows(1, ["bus", "car", "van"]), day="2026-03-02")
    with pytest.raises(DataError, match="Start a new monitor for another model"):
        monitor.watch(rows(1, ["cat", "cow", "pig"]), day="2026-03-02")
    # A file of predicted classes has only those that occur.
    monitor.watch(rows(2, ["cow", "dog"], "top1"), day="2026-03-02")
    monitor.watch(rows(3, ["dog", "pig"], "top1"), day="2026-03-03")
    with pytest.raises(DataError, match="another model"):
        monitor.watch(rows(4, ["bus", "pig"], "top1"), day="2026-03-04")
    numbered = DailyMonitor()
    numbered.watch(Predictions(probs=np.full((2, 3), 1 / 3), labels=[0, 1]), day="2026-03-01")
    with pytest.raises(DataError, match="first day, 3, got 4"):
        numbered.watch(Predictions(probs=np.full((2, 4), 1 / 4), labels=[0, 1]), day="2026-03-02")


def test_the_rule_stays_that_of_the_first_day(tmp_path):
    rule = certify_threshold(rows_of_day(99, n=3000), max_error=0.1)
    rule.save(tmp_path / "rule.json")
    monitor = DailyMonitor()
    monitor.watch(rows_of_day(0), day="2026-03-01", rule=rule)
    monitor.watch(rows_of_day(1), day="2026-03-02", rule=AcceptRule.load(tmp_path / "rule.json"))
    other = certify_threshold(rows_of_day(98, n=3000), max_error=0.1)
    with pytest.raises(DataError, match="got another one"):
        monitor.watch(rows_of_day(2), day="2026-03-03", rule=other)


def test_a_rule_is_given_every_day():
    rule = certify_threshold(rows_of_day(99, n=3000), max_error=0.1)
    monitor = DailyMonitor()
    monitor.watch(rows_of_day(0), day="2026-03-01", rule=rule)
    with pytest.raises(DataError, match="Give it every day"):
        monitor.watch(rows_of_day(1), day="2026-03-02")
    late = DailyMonitor()
    late.watch(rows_of_day(0), day="2026-03-01")
    with pytest.raises(DataError, match="Start a new monitor for it"):
        late.watch(rows_of_day(1), day="2026-03-02", rule=rule)


def test_a_change_after_a_long_quiet_time_is_found_as_soon():
    delays = []
    for quiet in (2, 120):
        monitor = DailyMonitor()
        for number in range(quiet + 20):
            shift = 0.1 if number >= quiet else 0.0
            if monitor.watch(rows_of_day(number, shift), day=day(number)).alarms:
                break
        delays.append(number - quiet)
    assert 0 <= delays[0] <= 8
    assert 0 <= delays[1] <= 8


def test_a_new_group_does_not_change_the_evidence_of_the_family():
    monitor = DailyMonitor(by=("site",))
    first = monitor.watch(rows_of_day(0, 0.1, groups="a"), day="2026-03-01")
    assert monitor._member("site", "late", 12).days == 1
    assert monitor._result("2026-03-01", 0, ()).evidence["site"] == pytest.approx(first.evidence["site"])


def test_confidences_of_zero_and_one_stay_finite():
    rows = Predictions(predicted=np.ones(4, int), confidence=[0.0, 1.0, 1.0, 0.5], labels=[1, 0, 1, 1])
    found = DailyMonitor().watch(rows, day="2026-03-01")
    assert np.isfinite(list(found.evidence.values())).all()
