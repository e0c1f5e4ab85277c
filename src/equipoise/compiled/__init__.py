"""All compiled code, and the choice between it and the plain way.

This room is at the bottom of the stairs and imports nothing of ours. Numba takes a second to import, so callers ask
:func:`equipoise.compiled.dispatch.find_kernel` for a kernel when there is work, and never import one.

| file | what it is |
|---|---|
| `dispatch` | compiled or plain; what is ready, what is worth compiling |
| `cache`, `jit` | where machine code is kept; the decorator of every compiled function |
| `threads`, `openmp_team` | torch's threads, and how compiled code shares work out to them |
| `simd`, `blocks`, `pointers` | vectors, rows of them, memory |
| `elementary`, `softmax_row` | exponentials and logarithms, and what a softmax is made of |
| `state_scan`, `state_kernel` | the pass that fills a `CalibrationState` |
| `bin_place` | the bin of one number |
| `temperature_kernel` | likelihood and confidences at a temperature |
| `slice_kernel` | sums of rows by the slice they belong to |
| `row_check_kernel` | are all rows distributions? |
| `top_class_kernel` | the likeliest class of every row |

`docs/compiled.md` tells how a kernel is written, tested and measured.
"""
