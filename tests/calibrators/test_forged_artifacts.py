"""Artifacts that were damaged or forged: the right map or one of our sentences, and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.calibrators import artifact, from_artifact, load
from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import DataError, EquipoiseError
from helpers.calibration_data import sample

CALIBRATORS = CATALOGUE["calibrators"]

every = pytest.mark.parametrize("key", CALIBRATORS)
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 3, 2**40, -0.5, 1e308, float("nan"), float("inf"), "", "x", "\ud800", [], [[]], ["x"], [1, [2]],
    {}, {"a": 1}, [float("nan")] * 3, [0] * 5000, {"shape": [2**40], "values": []},
)  # fmt: skip


@cache
def content(key: str) -> str:
    logits, labels = sample(60, 3)
    return json.dumps(CALIBRATORS[key].make().fit(2 * logits, labels).to_artifact())


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Walk over every container and key of an artifact."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def forged(key: str, rng: np.random.Generator) -> dict[str, Any]:
    """Change one to three places of an artifact."""
    made = json.loads(content(key))
    for _ in range(rng.integers(1, 4)):
        everywhere = list(places(made))
        container, name = everywhere[rng.integers(len(everywhere))]
        ways: list[Callable[[], Any]] = [
            lambda c=container, n=name: c.__setitem__(n, copy.deepcopy(ODD[rng.integers(len(ODD))])),
            lambda c=container, n=name: c.__delitem__(n),
            lambda c=container, n=name: c.update(odd=1) if isinstance(c, dict) else c.append(c[n]),
            lambda c=container, n=name: c.__setitem__(n, -c[n] if type(c[n]) in (int, float) else None),
        ]
        ways[rng.integers(len(ways))]()
    return made


def check(use: Callable[[], Any]) -> bool:
    """Run something; it must answer with finite probabilities or with an error of ours. Says whether it was refused."""
    try:
        calibrator = use()
    except DataError:
        return True
    asked = np.zeros((2, calibrator.n_classes or 3))
    asked[0, 0] = 1.0
    answer = calibrator(asked)
    scores = answer - answer.max(1, keepdims=True)
    assert np.isfinite(scores).all()
    return False


@every
def test_forged_content(key: str) -> None:
    rng = np.random.default_rng(7)
    refused = sum(check(lambda: from_artifact(forged(key, rng))) for _ in range(150))
    assert refused > 30


@every
@pytest.mark.parametrize("sealed", [False, True])
def test_forged_files(key: str, sealed: bool, tmp_path: Path) -> None:
    """With and without a hash that fits the forged content."""
    rng, path = np.random.default_rng(8), tmp_path / "map.json"
    for _ in range(40):
        made = forged(key, rng)
        if sealed:
            try:
                made["checksum"] = artifact._checksum(made)
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
                continue
        path.write_text(json.dumps(made), encoding="utf-8")
        refused = check(lambda: load(path))
        assert (
            refused or sealed or made == json.loads(content(key)) or set(made) - set(json.loads(content(key)))
        )


@every
@pytest.mark.parametrize("ending", ["json", "safetensors"])
def test_damaged_bytes(key: str, ending: str, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(9), tmp_path / f"map.{ending}"
    from_artifact(json.loads(content(key))).save(path)
    whole = path.read_bytes()
    for _ in range(40):
        damaged = bytearray(whole[: rng.integers(len(whole))] if rng.random() < 0.3 else whole)
        for place in rng.integers(0, max(len(damaged), 1), 2) if damaged else ():
            damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        check(lambda: load(path))


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "1", '"x"', "{", "[" * 100_000, '{"a":' * 50_000, "{}", '{"format": 1}', "\x00", "NaN",
        '{"format": "equipoise.calibrator"}', '{"format": "equipoise.calibrator", "version": 99}', "9" * 5000,
    ],
)  # fmt: skip
def test_other_text_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text(text)
    with pytest.raises(EquipoiseError, match="load: "):
        load(tmp_path / "map.json")


@pytest.mark.parametrize(
    ("key", "change", "words"),
    [
        ("temperature", {"parameters": {"temperature": {"shape": [], "values": [-2.0]}}}, "above 0"),
        ("temperature", {"parameters": {}}, "a table of temperature"),
        ("temperature", {"kind": "temprature"}, "did you mean 'temperature'"),
        ("temperature", {"settings": {"n_bins": "many"}}, "settings.n_bins"),
        ("temperature", {"settings": {"color": 1}}, "a setting of TemperatureScaling"),
        ("temperature", {"n_classes": None}, "n_classes"),
        ("vector", {"n_classes": 4}, r"of shape \(4,\), got \(3,\)"),
        ("ets", {"parameters": {"temperature": {"shape": [], "values": [1.0]},
                                "mixture": {"shape": [3], "values": [0.0, 0.0, 1.0]}}}, "uniform part"),
    ],
)  # fmt: skip
def test_the_message_names_the_part(key: str, change: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        from_artifact({**json.loads(content(key)), **change})
