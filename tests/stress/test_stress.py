"""A few tries of every kind, every day; ``python tests/stress`` makes thousands."""

import signal
from pathlib import Path

import numpy as np
import pytest

from equipoise.core.errors import DataError
from stress.judge import Kind, Wrong, is_ours, judge
from stress.kinds import KINDS

#: How many tries take a few seconds at most.
TRIES = {
    "bombs": 6,
    "calibrators": 60,
    "ties": 40,
    "awkward": 60,
    "output": 10,
    "checkpoints": 12,
    "models": 10,
    "states": 16,
    "merges": 8,
    "runs": 6,
    "cleaning": 8,
    "shadowing": 1,
    "references": 2,
    "adapters": 12,
    "environments": 2,
    "kills": 12,
    "full_disk": 24,
    "forks": 3,
}
SEED = 1

#: Tries of seed 0 that ended badly once.
ONCE_WRONG = {
    "files": (598,),
    "predictions": (9, 94, 191, 254, 281, 642, 958, 1165, 1431, 1480, 1481, 1560),
    "awkward": (20, 29),
    "states": (4, 22),
    "shadowing": (1,),
    "references": (0, 6),
    "full_disk": (0,),
}


@pytest.fixture
def _watchdog():
    """Whatever hangs is ended, on a busy machine too."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("no end after 300 s"))
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_watchdog")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", KINDS)
def test_right_numbers_or_one_of_our_errors(name: str, tmp_path: Path, set_threads) -> None:
    set_threads(1)
    kind = KINDS[name]
    (tmp_path / "prepared").mkdir()
    prepared = kind.prepare(tmp_path / "prepared")
    wrong = {
        f"python tests/stress --kind {name} --seed {SEED} --number {number}": judge(
            kind, prepared, SEED, number, tmp_path
        )
        for number in range(TRIES.get(name, 150))
    }
    wrong |= {
        f"python tests/stress --kind {name} --seed 0 --number {number}": judge(
            kind, prepared, 0, number, tmp_path
        )
        for number in ONCE_WRONG.get(name, ())
    }
    assert {line: text for line, text in wrong.items() if text} == {}


def _say(error: Exception) -> Kind:
    def attempt(prepared: None, chance: np.random.Generator, folder: Path) -> None:
        raise error

    return Kind(lambda folder: None, attempt, plain=True)


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (DataError("a.npz: damaged. Write it again."), None),
        (DataError("two\nlines"), "not one sentence: 'two\\nlines'"),
        (Wrong("ece is 2"), "Wrong: ece is 2"),
        (ValueError("operands could not be broadcast"), "ValueError: operands could not be broadcast"),
    ],
)
def test_the_judge_knows_right_from_wrong(error: Exception, wanted: str | None, tmp_path: Path) -> None:
    assert judge(_say(error), None, 0, 0, tmp_path) == wanted


def test_a_plain_error_is_ours_only_where_we_raise_it() -> None:
    from equipoise import metrics

    for use, ours in (
        (lambda: metrics.smooth_calibration_error([0.5], [0], bandwidth=0), True),
        (lambda: metrics.smoothed_error("spectrum", 0.1), False),
    ):
        with pytest.raises((ValueError, TypeError, AttributeError)) as caught:
            use()
        assert is_ours(caught.value, plain=True) is ours
        assert not is_ours(caught.value, plain=False)


def test_a_lot_of_work_and_memory_are_seen(tmp_path: Path) -> None:
    def busy(prepared: None, chance: np.random.Generator, folder: Path) -> None:
        sum(range(3_000_000))

    assert "took" in str(judge(Kind(lambda folder: None, busy, seconds=0.001), None, 0, 0, tmp_path))
