"""Compiled loops, and the choice between them and the fallback.

This package is the lowest layer and imports nothing of ours. Importing numba takes a second, so callers ask
:func:`equipoise.kernels.dispatch.find_kernel` for a kernel when there is work, and never import one.

| file | content |
|---|---|
| `dispatch` | compiled or fallback: which kernels are compiled, and when it is worth compiling one |
| `cache` | the folder of machine code, and the decorator of every compiled function |
| `state_kernel` | subtracts the largest logit of each row; adds rows to the sums of a `CalibrationState` |
| `threads` | a task for each part of some work, on several threads, with results in a fixed order |

`docs/kernels.md` explains how a kernel is written, tested and measured.
"""
