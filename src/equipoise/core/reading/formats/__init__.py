"""File formats, one file each, behind one table: ending to reader and writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from equipoise.core.reading.formats.base import ColumnReader, NewScores, WrittenColumns
from equipoise.core.reading.formats.csv import CsvReader, rewrite_csv, write_csv, write_tsv
from equipoise.core.reading.formats.jsonl import JsonlReader, rewrite_jsonl, write_jsonl
from equipoise.core.reading.formats.notes import Notes
from equipoise.core.reading.formats.npz import NpzReader, rewrite_npz, write_npz
from equipoise.core.reading.formats.parquet import ParquetReader, rewrite_parquet, write_parquet
from equipoise.core.reading.formats.safetensors import (
    SafetensorsReader,
    rewrite_safetensors,
    write_safetensors,
)
from equipoise.core.reading.storage import File

__all__ = ["ENDINGS", "READERS", "REWRITERS", "WITHOUT_METADATA", "WRITERS"]

Reader: TypeAlias = Callable[[File, int | None], ColumnReader]
Writer: TypeAlias = Callable[[Path, WrittenColumns, Notes], None]


class Rewriter(Protocol):
    """Writes tables of its format again, with other scores and everything else as it was."""

    def __call__(
        self, readers: Sequence[ColumnReader], path: Path, scores: NewScores, notes: Notes, *, side: Path
    ) -> None:
        """Write the tables one after the other to a path, and their notes into it, or to ``side``."""


READERS: Mapping[str, Reader] = {
    ".npz": NpzReader,
    ".csv": CsvReader,
    ".tsv": CsvReader,
    ".jsonl": JsonlReader,
    ".ndjson": JsonlReader,
    ".parquet": ParquetReader,
    ".safetensors": SafetensorsReader,
}

WRITERS: Mapping[str, Writer] = {
    ".npz": write_npz,
    ".csv": write_csv,
    ".tsv": write_tsv,
    ".jsonl": write_jsonl,
    ".ndjson": write_jsonl,
    ".parquet": write_parquet,
    ".safetensors": write_safetensors,
}

REWRITERS: Mapping[str, Rewriter] = {
    ".npz": rewrite_npz,
    ".csv": rewrite_csv,
    ".tsv": rewrite_csv,
    ".jsonl": rewrite_jsonl,
    ".ndjson": rewrite_jsonl,
    ".parquet": rewrite_parquet,
    ".safetensors": rewrite_safetensors,
}

#: Formats of text have no place for notes; they go to a file beside the table.
WITHOUT_METADATA = (".csv", ".tsv", ".jsonl", ".ndjson")

#: All endings; .npy files come in pairs and are opened apart.
ENDINGS = (*READERS, ".npy")
