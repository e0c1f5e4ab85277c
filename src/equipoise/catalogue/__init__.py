"""The catalogue: every method by name, as entries in TOML files, one file per category."""

from equipoise.catalogue.entry import Entry, Fidelity
from equipoise.catalogue.loader import CATALOGUE, CATEGORIES, check_match, find_loss
from equipoise.catalogue.metric_parts import METRIC_PARTS
from equipoise.catalogue.options import MethodOption, options_of
from equipoise.catalogue.plugins import add_plugins, failed_plugins, register
from equipoise.catalogue.sums import SumFactory, SumTerm, is_code, split_terms, sum_entry

__all__ = [
    "CATALOGUE",
    "CATEGORIES",
    "METRIC_PARTS",
    "Entry",
    "Fidelity",
    "MethodOption",
    "SumFactory",
    "SumTerm",
    "add_plugins",
    "check_match",
    "failed_plugins",
    "find_loss",
    "is_code",
    "options_of",
    "register",
    "split_terms",
    "sum_entry",
]
