"""Run the suite as other processors would, and print which configuration gave what.

The libraries choose their machine code by what the processor can do. Each configuration lowers that choice, so that
one machine shows what others round differently. No test may depend on which is in force.

Run: python .ci/portable.py [--only NAME ...] [TESTS ...]
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]

#: What was built for every x86-64, and what a processor of 2013 adds. NumPy gets a list of features to leave out: all
#: that it found here. numba takes the features from the name of the processor only if it is given none.
TORCH = {
    "default": {"ATEN_CPU_CAPABILITY": "default"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2"},
}
LIBRARIES = {
    "sse": {
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "NPY_DISABLE_CPU_FEATURES": " ".join(np.show_config(mode="dicts")["SIMD Extensions"]["found"]),
    },
    "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}
NUMBA = {
    "generic": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
    "haswell": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""},
}
ONE, TWO = {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2"}

CONFIGURATIONS: dict[str, dict[str, str]] = {
    "native": ONE,
    "native-2": TWO,
    "generic": {**TORCH["default"], **LIBRARIES["sse"], **NUMBA["generic"], **ONE},
    "generic-2": {**TORCH["default"], **LIBRARIES["sse"], **NUMBA["generic"], **TWO},
    "haswell": {**TORCH["avx2"], **LIBRARIES["avx2"], **NUMBA["haswell"], **ONE},
    "haswell-2": {**TORCH["avx2"], **LIBRARIES["avx2"], **NUMBA["haswell"], **TWO},
    "torch-generic": {**TORCH["default"], **ONE},
    "libraries-sse": {**LIBRARIES["sse"], **ONE},
    "numba-generic": {**NUMBA["generic"], **ONE},
    "plain": {"EQUIPOISE_PLAIN": "1", **ONE},
}


def run(settings: dict[str, str], tests: list[str]) -> tuple[int, str, float]:
    """Return the exit code of pytest, its last line, and how many seconds it took."""
    workers = "2" if settings["OMP_NUM_THREADS"] == "1" else "1"
    command = [sys.executable, "-m", "pytest", "-n", workers, "--color=no", *tests]
    start = time.monotonic()
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True
    ) as process:
        said = []
        for line in process.stdout or ():
            said.append(line)
            print(line, end="", flush=True)
    counts = re.findall(r"(\d+) (passed|failed|errors?|skipped)", "".join(said[-3:]))
    return process.returncode, ", ".join(f"{n} {what}" for n, what in counts), time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=CONFIGURATIONS, help="this one; may be repeated")
    parser.add_argument("tests", nargs="*", help="files and folders; all of the suite if none is named")
    options = parser.parse_args()
    rows = []
    for name in options.only or CONFIGURATIONS:
        print(f"== {name}: {' '.join(f'{k}={v}' for k, v in CONFIGURATIONS[name].items())}", flush=True)
        rows.append((name, *run(CONFIGURATIONS[name], options.tests)))
    print(f"\n{'configuration':<16}{'':<8}{'seconds':>8}  tests")
    for name, code, counts, seconds in rows:
        print(f"{name:<16}{'failed' if code else 'passed':<8}{seconds:>8.0f}  {counts}")
    return int(any(code for _, code, _, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
