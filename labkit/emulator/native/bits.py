"""Single machine operations that Numba has no name for. Each compiles to one or two instructions."""

from __future__ import annotations

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# A function of one lane or one wave. Division by zero gives what IEEE 754 says, not an exception.
lane = njit(error_model="numpy", _nrt=False)


@intrinsic
def as_float(typing, x):
    """The float32 whose bits are those of a uint32."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.uint32), generate


@intrinsic
def as_bits(typing, x):
    """The bits of a float32 as a uint32."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.uint32(types.float32), generate


@intrinsic
def fused(typing, a, b, c):
    """a * b + c of float32 with one rounding."""

    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


def _load(bits: int, result: types.Type):
    @intrinsic
    def load(typing, address):
        def generate(context, builder, signature, arguments):
            kind = ir.IntType(bits)
            pointer = builder.inttoptr(arguments[0], kind.as_pointer())
            value = builder.load(pointer, align=1)
            return value if bits == 32 else builder.zext(value, ir.IntType(32))

        return result(types.int64), generate

    return load


def _store(bits: int):
    @intrinsic
    def store(typing, address, value):
        def generate(context, builder, signature, arguments):
            kind = ir.IntType(bits)
            pointer = builder.inttoptr(arguments[0], kind.as_pointer())
            value = arguments[1] if bits == 32 else builder.trunc(arguments[1], kind)
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.uint32), generate

    return store


# Memory of this process at an address; a narrower value is zero-extended, a wider one cut off.
load8, load16, load32 = (_load(bits, types.uint32) for bits in (8, 16, 32))
store8, store16, store32 = (_store(bits) for bits in (8, 16, 32))


def _view(kind: types.Type):
    @intrinsic
    def view(typing, address):
        def generate(context, builder, signature, arguments):
            array = context.make_array(signature.return_type)(context, builder)
            data = builder.inttoptr(arguments[0], context.get_data_type(kind).as_pointer())
            size = ir.Constant(ir.IntType(64), context.get_abi_sizeof(context.get_data_type(kind)))
            many = ir.Constant(ir.IntType(64), 1 << 40)  # nothing checks it
            context.populate_array(
                array, data=data, shape=[many], strides=[size], itemsize=size, meminfo=None, parent=None
            )
            return array._getvalue()

        return types.Array(kind, 1, "C")(types.int64), generate

    return view


# The memory at an address as an array without an end.
words, numbers, long_words, octets, floats = map(
    _view, (types.uint32, types.int64, types.uint64, types.uint8, types.float32)
)


_ROWS_AT_ONCE = 8  # sums that do not wait for each other


@intrinsic
def add_products(typing, depth, left, right, product, row, start):
    """product[row + n, columns] = the sum over k of left[k, row + n] * right[k, columns], for n from 0 to 7.

    columns: the 16 from `start` on, whose sums are one vector register. left, right and product are
    addresses of float32 [.., 32].
    """

    def generate(context, builder, signature, arguments):
        count, left, right, product, row, start = arguments
        i32, i64, vector = ir.IntType(32), ir.IntType(64), ir.VectorType(ir.FloatType(), 16)
        undefined, everywhere = (
            ir.Constant(vector, ir.Undefined),
            ir.Constant(ir.VectorType(i32, 16), [0] * 16),
        )
        lefts, rights, sums = (
            builder.inttoptr(x, ir.FloatType().as_pointer()) for x in (left, right, product)
        )

        def place(base, line, column):
            return builder.gep(base, [builder.add(builder.mul(line, ir.Constant(i64, 32)), column)])

        zero = ir.Constant(vector, [0.0] * 16)
        totals = [cgutils.alloca_once_value(builder, zero) for _ in range(_ROWS_AT_ONCE)]
        with cgutils.for_range(builder, count) as loop:
            at = builder.bitcast(place(rights, loop.index, start), vector.as_pointer())
            line = builder.load(at, align=4)
            for n, total in enumerate(totals):
                column = builder.add(row, ir.Constant(i64, n))
                factor = builder.load(place(lefts, loop.index, column))
                one = builder.insert_element(undefined, factor, ir.Constant(i32, 0))
                factors = builder.shuffle_vector(one, undefined, everywhere)
                builder.store(builder.fadd(builder.load(total), builder.fmul(factors, line)), total)
        for n, total in enumerate(totals):
            to = place(sums, builder.add(row, ir.Constant(i64, n)), start)
            builder.store(builder.load(total), builder.bitcast(to, vector.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), generate
