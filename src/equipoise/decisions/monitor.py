r"""Watching labelled predictions day after day, without false alarms from looking often.

A monitor bets against the claim that outcomes are as frequent as claimed. For a row with outcome :math:`x` (0 or 1) and
claimed frequency :math:`p`, the wealth of a bettor is multiplied by

.. math:: \frac{e^{\theta x}}{1 - p + p e^{\theta}}

which has mean one if the claim holds. The wealth of a monitor is the mean over bettors with different
:math:`\theta`. Bettors receive :math:`1 / (t (t + 1))` of their capital on day :math:`t`; the rest is set aside. So a
change after a long quiet time meets fresh capital. By Ville's inequality the wealth ever reaches :math:`1 / \alpha`
with probability at most :math:`\alpha`, however often it is looked at. Monitors of one family (all bands, all groups)
are averaged, and so are the families, so that all of them together keep :math:`\alpha`.

Reference:
    Ramdas et al. (2023), Game-theoretic statistics and safe anytime-valid inference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from typing import Any, final

import numpy as np
from scipy.special import logsumexp

from equipoise.core.arrays import Array
from equipoise.core.checksums import content_checksum
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.records import Record, read_record, write_record
from equipoise.core.row_identity import RowIdentity
from equipoise.core.rows import check_disjoint
from equipoise.decisions.accept_rule import AcceptRule
from equipoise.decisions.inputs import apply_calibrator

__all__ = ["SHIFTS", "Alarm", "DailyMonitor", "Evidence", "WatchedDay"]

_FORMAT, _VERSION = "equipoise.monitor", 1
_WHERE = "DailyMonitor.watch"
#: Shifts of the log-odds that bettors bet on.
SHIFTS = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
#: Logarithm of a wealth that is as good as none, which JSON can hold.
_NOTHING = -700.0
#: Families of monitors that are not columns of groups.
_FAMILIES = ("calibration", "band", "promise", "accuracy")
_REMEDY = "Restore a backup of it, or start a new STATE."
#: Names of families in the output that differ from those in records.
_FAMILY_NAMES = {"band": "a band of confidence"}
#: Lower ends of the bands of confidence.
BANDS = np.array([0.0, 0.5, 0.7, 0.8, 0.9, 0.95])


@final
@dataclass
class Evidence:
    """The wealth of one monitor.

    Attributes:
        log_wealths: Logarithm of the wealth that every bettor has at stake.
        days: Days so far.
        lowest: Smallest logarithm of the monitor's wealth so far.
        since: Day after that; the evidence has grown since.
        n: Rows since then.
        claimed: Claimed frequency, summed over these rows.
        observed: Outcomes among these rows.
    """

    log_wealths: list[float]
    days: int = 0
    lowest: float = 0.0
    since: str = ""
    n: int = 0
    claimed: float = 0.0
    observed: float = 0.0

    @property
    def log_wealth(self) -> float:
        """Logarithm of the mean wealth, with what is not at stake yet."""
        at_stake = logsumexp(self.log_wealths) - np.log(len(self.log_wealths))
        return float(np.logaddexp(at_stake, -np.log(self.days + 1)))

    def update(self, outcome: Array, claimed: Array, shifts: Array, tolerance: float, day: str) -> None:
        """Bet on the rows of one day."""
        # A bettor on more outcomes grants the claim its tolerance upwards, one on fewer downwards.
        granted = np.clip(claimed[:, None] + np.sign(shifts) * tolerance, 0.0, 1.0)
        growth = shifts * outcome[:, None] - np.log1p(granted * np.expm1(shifts))
        self.days += 1
        at_stake = np.logaddexp(self.log_wealths, -np.log(self.days * (self.days + 1)))
        self.log_wealths = (at_stake + growth.sum(axis=0)).tolist()
        self.since = self.since or day
        self.n += len(outcome)
        self.claimed += float(claimed.sum())
        self.observed += float(outcome.sum())
        if self.log_wealth <= self.lowest:
            self.lowest, self.since = self.log_wealth, ""
            self.n, self.claimed, self.observed = 0, 0.0, 0.0


@final
@dataclass(frozen=True)
class Alarm:
    """A family of monitors whose evidence is above the limit.

    Attributes:
        family: ``"calibration"``, ``"band"``, a column of groups, ``"promise"`` or ``"accuracy"``.
        member: The band or group with the most evidence; empty if there is only one monitor.
        evidence: Wealth of the family.
        since: Day since which the evidence of this member grows.
        claimed: Claimed frequency since then.
        observed: Observed frequency since then.
        n: Rows since then.
    """

    family: str
    member: str
    evidence: float
    since: str
    claimed: float
    observed: float
    n: int

    def __str__(self) -> str:
        # Members of "band" name themselves: "confidence 0.5 to 0.7".
        name = self.member if self.family == "band" else f"{self.family} {self.member}".rstrip()
        rows, outcome, limit = "predictions", "right", "claimed"
        if self.family == "promise":
            rows, outcome, limit = "accepted predictions", "wrong", "promised at most"
        elif self.family == "accuracy":
            outcome, limit = "wrong", "allowed at most"
        return (
            f"{name}: {100 * self.observed:.1f}% of {self.n:,} {rows} are {outcome} since {self.since}, "
            f"{limit} {100 * self.claimed:.1f}% (evidence {self.evidence:.3g})"
        )


@final
@dataclass(frozen=True)
class WatchedDay:
    """What one day added.

    Attributes:
        day: The day.
        n: Rows of this day.
        missed: Days without rows since the last one.
        evidence: Wealth of every family after this day.
        mean_evidence: Mean of these.
        limit: Mean wealth from which on there is an alarm.
        alarms: At an alarm, the families above the limit.
    """

    day: str
    n: int
    missed: tuple[str, ...]
    evidence: Mapping[str, float]
    mean_evidence: float
    limit: float
    alarms: tuple[Alarm, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)

    def describe_missed(self) -> str:
        """Return the days without rows in one line."""
        shown = ", ".join(self.missed[:5]) + (" ..." if len(self.missed) > 5 else "")
        days = "day" if len(self.missed) == 1 else "days"
        return f"Warning: no rows for {len(self.missed):,} {days}: {shown}."

    def describe(self) -> str:
        """Return the day in a few lines."""
        lines = [f"{self.day}: {self.n:,} row{'' if self.n == 1 else 's'}."]
        if self.missed:
            lines.append(self.describe_missed())
        if self.alarms:
            lines += [f"ALARM  {one}." for one in self.alarms]
            lines.append(
                "Next: fit a calibrator and certify the decision again, on labelled rows since the change, and start a "
                "new STATE."
            )
        else:
            most = max(self.evidence, key=lambda name: self.evidence[name])
            lines.append(
                f"No alarm: evidence {self.mean_evidence:.3g}, an alarm needs {self.limit:.4g}. Strongest: "
                f"{_FAMILY_NAMES.get(most, most)}, {self.evidence[most]:.3g}."
            )
        return "\n".join(lines)


@final
@dataclass
class DailyMonitor:
    """Monitors of calibration, of the promise of a rule and of accuracy, continued day after day.

    If all claims hold, there is ever an alarm with probability at most ``alpha``, over all days and monitors together.

    Args:
        alpha: Probability of a false alarm, over all days and monitors together.
        tolerance: Deviation of frequencies from confidences that is no reason for an alarm.
        by: Columns of groups to watch one by one.
        min_accuracy: Accuracy that is claimed; None does not watch it.
        rule: Checksum of the rule whose promise is watched; set by :meth:`watch` on the first day.
        classes: Names of the classes, or how many there are; set by :meth:`watch` on the first day.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> monitor = DailyMonitor(alpha=0.05)
        >>> for day in range(1, 21):
        ...     claimed = rng.uniform(0.6, 1, 500)
        ...     right = rng.random(500) < claimed - (0.1 if day > 10 else 0.0)
        ...     rows = Predictions(predicted=np.ones(500, int), confidence=claimed, labels=right.astype(int))
        ...     found = monitor.watch(rows, day=f"2026-03-{day:02}")
        ...     if found.alarms:
        ...         break
        >>> found.day, found.alarms[0].family
        ('2026-03-11', 'band')
    """

    alpha: float = 0.05
    tolerance: float = 0.0
    by: Sequence[str] = ()
    min_accuracy: float | None = None
    rule: str | None = None
    classes: list[str] | int | None = None
    days: dict[str, str] = field(default_factory=dict)
    evidence: dict[str, dict[str, Evidence]] = field(default_factory=dict)
    identity: RowIdentity = field(default_factory=RowIdentity, compare=False, repr=False)

    def __post_init__(self) -> None:
        where = "DailyMonitor"
        if not 0 < self.alpha < 1:
            raise ValueError(f"{where}: `alpha` must be between 0 and 1, got {self.alpha}. 5% is 0.05.")
        if not 0 <= self.tolerance < 0.5:
            raise ValueError(f"{where}: `tolerance` must be at least 0 and below 0.5, got {self.tolerance}.")
        if self.min_accuracy is not None and not 0 < self.min_accuracy < 1:
            raise ValueError(f"{where}: `min_accuracy` must be between 0 and 1, got {self.min_accuracy}.")
        if isinstance(self.by, str):
            raise TypeError(f"{where}: `by` must be a list of columns, got {self.by!r}. Write [{self.by!r}].")
        self.by = tuple(self.by)
        for place, name in enumerate(self.by):
            # A family with two columns would bet twice on the same rows, so its evidence would mean nothing.
            if name in _FAMILIES or name in self.by[:place]:
                raise ValueError(
                    f"{where}: every column of `by` must be named once, and not {', '.join(_FAMILIES[:-1])} or "
                    f"{_FAMILIES[-1]}, got {', '.join(self.by)}. Leave one out, or rename the column."
                )

    def watch(
        self, predictions: Predictions, *, day: str | date, rule: AcceptRule | None = None
    ) -> WatchedDay:
        """Add the labelled rows of one day.

        Args:
            predictions: Labelled predictions.
            day: The day, as a date or as 2026-03-09; later than all days before.
            rule: A certified rule whose promise is watched too; the same every day. If it has a calibrator, the
                calibrator is applied first, and every monitor judges the calibrated predictions.

        Raises:
            DataError: If the day or some of these rows were added before, groups are missing, or the rule is not that
                of the first day.
            SplitError: If rows were used to certify the threshold or to fit the calibrator.
        """
        # Everything is checked before the first bet, so that an error leaves the monitor as it was.
        day = str(day)  # a date is as good as its text
        missed = self._check_day(predictions, day)
        rows = self._check_rows(predictions)
        checksum = self._check_rule(rule)
        classes = self._check_classes(predictions)
        judged = predictions
        if rule is not None:
            rule.check_disjoint(predictions, where=_WHERE)
            judged = apply_calibrator(rule.calibrator, predictions, where=_WHERE)
        if judged.fitted_on is not None:
            check_disjoint(judged.rows, judged.fitted_on, where=_WHERE)
        correct = judged.correct.astype(np.float64)
        claimed = judged.confidence.astype(np.float64)
        accepted, limit = (
            (None, None) if rule is None else (rule(predictions), rule.certificate.promised_error)
        )
        self.rule, self.classes = checksum, classes
        both = np.concatenate([-SHIFTS[::-1], SHIFTS])
        self._bet("calibration", np.full(len(correct), ""), correct, claimed, both, self.tolerance, day)
        band = np.searchsorted(BANDS, claimed, side="right") - 1
        ends = [*BANDS[1:].tolist(), 1.0]
        names = np.array([f"confidence {low:g} to {high:g}" for low, high in zip(BANDS, ends, strict=True)])
        for name in names:  # every band counts from the first day on
            self._member("band", str(name), len(both))
        self._bet("band", names[band], correct, claimed, both, self.tolerance, day)
        for column in self.by:
            group = predictions.groups[column].astype(np.str_)
            self._bet(column, group, correct, claimed, both, self.tolerance, day)
        if accepted is not None and limit is not None:
            self._one_sided("promise", 1 - correct[accepted], limit, day)
        if self.min_accuracy is not None:
            self._one_sided("accuracy", 1 - correct, 1 - self.min_accuracy, day)
        self.days[day] = predictions.rows.fingerprint
        self.identity.merge(rows)
        return self._result(day, len(correct), missed)

    def _check_rows(self, predictions: Predictions) -> RowIdentity:
        """Return which rows these are; raise if some were added before, or lack what the monitors need."""
        rows = RowIdentity()
        rows.update(predictions)
        shared = rows.overlap(self.identity)
        if shared:
            raise DataError(
                f"{_WHERE}: {shared} were added on an earlier day, so they would count twice. Leave them out."
            )
        if predictions.weights is not None:
            raise DataError(f"{_WHERE}: expected rows without weights, got weights. Drop the weights.")
        for column in self.by:
            if column not in predictions.groups:
                raise DataError(f"{_WHERE}: the predictions have no column {column!r}. Give it in `groups`.")
        return rows

    def _check_rule(self, rule: AcceptRule | None) -> str | None:
        """Return the checksum of a rule; raise if it is not that of the first day."""
        checksum = None if rule is None else content_checksum(rule.as_dict())
        if rule is not None and rule.certificate.promised_error is None:
            raise DataError(
                f"{_WHERE}: no threshold was certified, so there is no promise. Leave the rule out."
            )
        if not self.days or checksum == self.rule:
            return checksum
        if self.rule is None:
            # Evidence of a family that comes later could not be averaged with that of the others.
            expected = "no rule, as on the first day, got one. Start a new monitor for it"
        elif rule is None:
            expected = "the rule of the first day, got none. Give it every day (--decision)"
        else:
            expected = "the rule of the first day, got another one. Start a new monitor for it"
        raise DataError(f"{_WHERE}: expected {expected}.")

    def _check_classes(self, predictions: Predictions) -> list[str] | int | None:
        """Return the classes; raise if these are not predictions of the model of the first day."""
        names, known = predictions.class_names, self.classes
        found = predictions.n_classes if names is None else list(names)
        if found is None or known is None:
            return known if found is None else found
        is_same = type(found) is not type(known) or found == known
        if isinstance(found, list) and isinstance(known, list):
            # A file of predicted classes names only those that occur.
            mine, first = set(found), set(known)
            is_same = bool(mine & first) and (predictions.kind == "top1" or mine <= first or first <= mine)
        if not is_same:
            raise DataError(
                f"{_WHERE}: expected the classes of the first day, {_listed(known)}, got {_listed(found)}. "
                "Start a new monitor for another model."
            )
        return known

    def _one_sided(self, family: str, wrong: Array, limit: float, day: str) -> None:
        self._bet(family, np.full(len(wrong), ""), wrong, np.full(len(wrong), limit), SHIFTS, 0.0, day)

    def _member(self, family: str, name: str, n_bettors: int) -> Evidence:
        """Return a member of a family; a new one starts with the mean wealth, so that the mean stays a fair game."""
        members = self.evidence.setdefault(family, {})
        if name not in members:
            old = list(members.values())
            days = old[0].days if old else 0
            if days:
                at_stake = float(logsumexp([one.log_wealths for one in old])) - np.log(len(old) * n_bettors)
                members[name] = Evidence([float(at_stake)] * n_bettors, days)
                members[name].lowest = members[name].log_wealth
            else:
                members[name] = Evidence([_NOTHING] * n_bettors)
        return members[name]

    def _bet(
        self,
        family: str,
        member: Array,
        outcome: Array,
        claimed: Array,
        shifts: Array,
        tolerance: float,
        day: str,
    ) -> None:
        for name in np.unique(member).tolist() or [""]:
            self._member(family, name, len(shifts))
        for name, one in self.evidence[family].items():
            kept = member == name
            one.update(outcome[kept], claimed[kept], shifts, tolerance, day)

    def _check_day(self, predictions: Predictions, day: str) -> tuple[str, ...]:
        try:
            today = date.fromisoformat(day)
        except ValueError:
            today = None
        # Other forms of a date, such as 20260309, would pass for another day.
        if today is None or str(today) != day:
            raise DataError(f"{_WHERE}: `day` must be a date such as 2026-03-09, got {day!r}.")
        if day in self.days:
            raise DataError(f"{_WHERE}: {day} was added before, so its rows would count twice. Leave it out.")
        if predictions.rows.fingerprint in self.days.values():
            before = next(one for one, rows in self.days.items() if rows == predictions.rows.fingerprint)
            raise DataError(
                f"{_WHERE}: these rows were added on {before}, so they would count twice. Leave them out."
            )
        if not self.days:
            return ()
        last = date.fromisoformat(max(self.days))
        if today < last:
            raise DataError(f"{_WHERE}: expected a day after {last}, got {day}. Add the days in order.")
        return tuple(str(last + timedelta(days=step)) for step in range(1, (today - last).days))

    def _result(self, day: str, n: int, missed: tuple[str, ...]) -> WatchedDay:
        limit = 1 / self.alpha
        wealth = {
            family: float(np.exp(min(_log_mean(members), 700.0))) for family, members in self.evidence.items()
        }
        mean = sum(wealth.values()) / len(wealth)
        alarms = []
        for family, members in self.evidence.items() if mean >= limit else ():
            worst = max(members, key=lambda name: members[name].log_wealth)
            one = members[worst]
            rows = max(one.n, 1)
            rates = one.claimed / rows, one.observed / rows
            if wealth[family] >= limit:
                alarms.append(Alarm(family, worst, wealth[family], one.since or day, *rates, one.n))
        return WatchedDay(day, n, missed, wealth, mean, limit, tuple(alarms))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the monitor as JSON with a checksum."""
        plain, (identity, hashes) = asdict(self), self.identity.parts()
        write_record(path, _FORMAT, _VERSION, Record({**plain, "identity": identity}, hashes))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DailyMonitor:
        """Read what :meth:`save` wrote.

        Raises:
            DataError: If the file is something else, is from a newer version, or was changed.
        """
        record = read_record(path, _FORMAT, _VERSION, remedy=_REMEDY)
        plain, identity = dict(record.plain), RowIdentity()
        try:
            identity.fill(plain.pop("identity"), record.arrays)
            evidence = {
                family: {name: Evidence(**one) for name, one in members.items()}
                for family, members in plain.pop("evidence").items()
            }
            by = tuple(plain.pop("by"))
            monitor = cls(**plain, by=by, evidence=evidence, identity=identity)
            monitor._check_content()
            return monitor
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"DailyMonitor.load: {path} is damaged ({error}). {_REMEDY}") from None

    def _check_content(self) -> None:
        """Raise `ValueError` or `TypeError` unless this is what days of rows leave behind."""
        sides = {"calibration": 2, "band": 2, **dict.fromkeys(self.by, 2)}
        sides |= {"promise": 1} if self.rule is not None else {}
        sides |= {"accuracy": 1} if self.min_accuracy is not None else {}
        if set(self.evidence) != set(sides if self.days else ()):
            raise ValueError("the monitors are not those of the settings")
        names = self.classes if isinstance(self.classes, list) else []
        texts = [*self.days.values(), *names, *self.by, self.rule or ""]
        if not all(isinstance(one, str) for one in texts) or type(self.classes) not in (
            list,
            int,
            type(None),
        ):
            raise TypeError("rows, rule, columns and classes must be text")
        for day in self.days:
            date.fromisoformat(day)
        for family, members in self.evidence.items():
            for one in members.values():
                numbers = [*one.log_wealths, one.lowest, one.claimed, one.observed]
                if len(one.log_wealths) != sides[family] * len(SHIFTS) or not np.isfinite(numbers).all():
                    raise ValueError("evidence must be one finite number per bettor")
                if one.days != len(self.days) or type(one.n) is not int or one.since not in ("", *self.days):
                    raise ValueError("evidence must be of the days that were added")


def _log_mean(members: Mapping[str, Evidence]) -> float:
    return float(logsumexp([one.log_wealth for one in members.values()]) - np.log(len(members)))


def _listed(classes: list[str] | int | None) -> str:
    return ", ".join(classes[:10]) if isinstance(classes, list) else str(classes)
