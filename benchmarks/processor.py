"""Which processor code is compiled for, and what it can do; for the benchmarks of compiled code."""

from __future__ import annotations

import argparse
import os

# Settings of numba, made before it is loaded: the name of a processor, and its features beside those of the name.
_SETTINGS = {
    "native": {},
    "haswell": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""},
    "generic": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
}
_TELLING = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512vl")


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cpu",
        choices=_SETTINGS,
        default="native",
        help="compile as for this processor: haswell has AVX2 and no AVX-512, generic has SSE2 alone",
    )


def compile_for(name: str) -> None:
    """Set what numba compiles for; it must not be loaded yet. Says what is in force."""
    os.environ.update(_SETTINGS[name])
    from llvmlite import binding
    from numba.core.registry import cpu_target

    _, target, features = cpu_target.target_context.codegen().magic_tuple()
    named = [feature for feature in _TELLING if f"+{feature}" in features.split(",")]
    print(
        f"this processor: {binding.get_host_cpu_name()}; compiled for {target}, "
        f"{'with ' + ', '.join(named) if named else 'with what its name says'}"
    )
