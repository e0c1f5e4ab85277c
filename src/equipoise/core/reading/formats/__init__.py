"""File formats, one file each, behind one table: ending to reader and writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from equipoise.core.reading.formats.base import ColumnReader, WrittenColumns
from equipoise.core.reading.formats.csv import CsvReader, write_csv, write_tsv
from equipoise.core.reading.formats.jsonl import JsonlReader, write_jsonl
from equipoise.core.reading.formats.notes import Notes
from equipoise.core.reading.formats.npz import NpzReader, write_npz
from equipoise.core.reading.formats.parquet import ParquetReader, write_parquet
from equipoise.core.reading.formats.safetensors import SafetensorsReader, write_safetensors
from equipoise.core.reading.storage import File

__all__ = ["ENDINGS", "READERS", "WRITERS"]

Reader: TypeAlias = Callable[[File, int | None], ColumnReader]
Writer: TypeAlias = Callable[[Path, WrittenColumns, Notes], None]

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

#: All endings; .npy files come in pairs and are opened apart.
ENDINGS = (*READERS, ".npy")
