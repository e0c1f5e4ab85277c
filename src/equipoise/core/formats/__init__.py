"""File formats, one file each, behind one table: ending to reader and writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from equipoise.core.formats.csv import CsvTable, write_csv, write_tsv
from equipoise.core.formats.notes import Notes
from equipoise.core.formats.npz import NpzTable, write_npz
from equipoise.core.formats.parquet import ParquetTable, write_parquet
from equipoise.core.formats.safetensors import SafetensorsTable, write_safetensors
from equipoise.core.formats.table import Table, WrittenColumns

__all__ = ["ENDINGS", "READERS", "WRITERS"]

Reader: TypeAlias = Callable[[Path], Table]
Writer: TypeAlias = Callable[[Path, WrittenColumns, Notes], None]

READERS: Mapping[str, Reader] = {
    ".npz": NpzTable,
    ".csv": CsvTable,
    ".tsv": CsvTable,
    ".parquet": ParquetTable,
    ".safetensors": SafetensorsTable,
}

WRITERS: Mapping[str, Writer] = {
    ".npz": write_npz,
    ".csv": write_csv,
    ".tsv": write_tsv,
    ".parquet": write_parquet,
    ".safetensors": write_safetensors,
}

#: All endings; .npy files come in pairs and are opened apart.
ENDINGS = (*READERS, ".npy")
