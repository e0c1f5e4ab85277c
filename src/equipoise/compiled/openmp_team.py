"""How compiled code shares work out to a team of threads."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["over_pieces"]

_LONG, _INT, _NOTHING = ir.IntType(64), ir.IntType(32), ir.VoidType()
_ANY = ir.IntType(8).as_pointer()
_TASK = ir.FunctionType(_NOTHING, [_ANY])


@intrinsic
def over_pieces(_typing, team, n_pieces, function, arguments):  # type: ignore[no-untyped-def]
    """Call ``function(piece, *arguments)`` for every piece, at the same time where there is a team.

    Args:
        team: From :func:`equipoise.compiled.threads.find_team`; with zeros the caller does all pieces itself.
        n_pieces: How many pieces there are; so many threads are asked for.
        function: A compiled function without a result. Pieces must not write to the same memory.
        arguments: A tuple.

    Raises:
        MemoryError: If one of the calls failed, which for want of memory it may.
    """
    inner = function.get_call_type(_typing, (types.int64, *arguments.types), {})

    def generate(context, builder, signature, values):  # type: ignore[no-untyped-def]
        addresses, n_wanted, _, given = values
        begin, number, size = cgutils.unpack_tuple(builder, addresses, 3)
        compiled = signature.args[2].dispatcher.get_compile_result(inner)
        context.add_linking_libs([compiled.library])
        content = ir.LiteralStructType([_LONG, _LONG, _LONG, _LONG, given.type])
        place = cgutils.alloca_once(builder, content)
        for slot, value in enumerate((ir.Constant(_LONG, 0), number, size, n_wanted, given)):
            builder.store(value, _slot(builder, place, slot))
        data = builder.bitcast(place, _ANY)
        work = _make_work(context, builder.module, content, compiled, inner)
        task = _make_task(builder.module, content, work)
        nobody = builder.icmp_signed("==", begin, ir.Constant(_LONG, 0))
        alone = builder.or_(nobody, builder.icmp_signed("<=", n_wanted, ir.Constant(_LONG, 1)))
        with builder.if_else(alone) as (by_caller, by_team):
            with by_caller:
                builder.call(work, [data, ir.Constant(_LONG, 0), ir.Constant(_LONG, 1)])
            with by_team:
                kind = ir.FunctionType(_NOTHING, [_TASK.as_pointer(), _ANY, _INT, _INT])
                start = builder.inttoptr(begin, kind.as_pointer())
                builder.call(start, [task, data, builder.trunc(n_wanted, _INT), ir.Constant(_INT, 0)])
        failed = builder.icmp_signed("!=", builder.load(_slot(builder, place, 0)), ir.Constant(_LONG, 0))
        with cgutils.if_unlikely(builder, failed):
            context.call_conv.return_user_exc(
                builder, MemoryError, ("equipoise: a piece of compiled work failed; memory may be short.",)
            )
        return context.get_dummy_value()

    return types.void(types.UniTuple(types.int64, 3), types.int64, function, arguments), generate


def _slot(builder: Any, place: Any, number: int) -> Any:
    return builder.gep(place, [ir.Constant(_INT, 0), ir.Constant(_INT, number)], inbounds=True)


def _function(module: Any, kind: Any, name: str) -> Any:
    made = ir.Function(module, kind, name=module.get_unique_name(name))
    made.linkage = "internal"
    return made, ir.IRBuilder(made.append_basic_block("entry"))


def _make_work(context: Any, module: Any, content: Any, compiled: Any, inner: Any) -> Any:
    """Return a function (data, first, step) that does the pieces first, first + step, ..."""
    work, builder = _function(module, ir.FunctionType(_NOTHING, [_ANY, _LONG, _LONG]), "pieces")
    data, first, step = work.args
    place = builder.bitcast(data, content.as_pointer())
    n_pieces, given = (builder.load(_slot(builder, place, slot)) for slot in (3, 4))
    with cgutils.for_range_slice(builder, first, n_pieces, step, intp=_LONG) as (piece, _):
        arguments = [piece, *cgutils.unpack_tuple(builder, given)]
        status, _ = context.call_internal_no_propagate(builder, compiled.fndesc, inner, arguments)
        with cgutils.if_unlikely(builder, status.is_error):
            builder.store(ir.Constant(_LONG, 1), _slot(builder, place, 0))
    builder.ret_void()
    return work


def _make_task(module: Any, content: Any, work: Any) -> Any:
    """Return what every thread of a team calls: it asks for its number, and does its share."""
    task, builder = _function(module, _TASK, "task")
    place = builder.bitcast(task.args[0], content.as_pointer())
    # The team may be smaller than asked for, down to the caller alone.
    ask = ir.FunctionType(_INT, []).as_pointer()
    mine, all_of_us = (
        builder.zext(
            builder.call(builder.inttoptr(builder.load(_slot(builder, place, slot)), ask), []), _LONG
        )
        for slot in (1, 2)
    )
    builder.call(work, [task.args[0], mine, all_of_us])
    builder.ret_void()
    return task
