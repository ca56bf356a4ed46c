"""Each tl.atomic_ operation in a kernel: what memory holds at the end, and what the kernel got back."""

import itertools

import pytest
import torch
import triton
import triton.language as tl

pytestmark = pytest.mark.usefixtures("no_finding")

N, BLOCK, SLOTS = 300, 128, 5
GRID = (-(-N // BLOCK),)


@triton.jit
def atomic_kernel(
    x_ptr, out_ptr, before_ptr, n,
    SLOTS: tl.constexpr, OP: tl.constexpr, SEM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask)
    where = out_ptr + at % SLOTS
    if OP == "add":
        before = tl.atomic_add(where, x, mask, sem=SEM)
    elif OP == "max":
        before = tl.atomic_max(where, x, mask, sem=SEM)
    elif OP == "min":
        before = tl.atomic_min(where, x, mask, sem=SEM)
    elif OP == "and":
        before = tl.atomic_and(where, x, mask, sem=SEM)
    elif OP == "or":
        before = tl.atomic_or(where, x, mask, sem=SEM)
    elif OP == "xor":
        before = tl.atomic_xor(where, x, mask, sem=SEM)
    elif OP == "xchg":
        before = tl.atomic_xchg(where, x, mask, sem=SEM)
    tl.store(before_ptr + at, before, mask)


@triton.jit
def compare_and_swap_kernel(expected_ptr, x_ptr, out_ptr, before_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.atomic_cas(out_ptr + at, tl.load(expected_ptr + at), tl.load(x_ptr + at))
    tl.store(before_ptr + at, before)


@triton.jit
def lock_kernel(lock_ptr, total_ptr, order_ptr):
    """Programs take a lock in turn and add to a total that no atomic protects."""
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire") == 1:
        pass
    total = tl.load(total_ptr, volatile=True)
    tl.store(order_ptr + total, tl.program_id(0))
    tl.store(total_ptr, total + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="release")


def combine(op: str, a, b):
    """One step in Python's own arithmetic."""
    return {"add": lambda: a + b, "max": lambda: max(a, b), "min": lambda: min(a, b), "and": lambda: a & b,
            "or": lambda: a | b, "xor": lambda: a ^ b, "xchg": lambda: b}[op]()  # fmt: skip


def wrap(value, dtype: torch.dtype):
    """An integer as its type holds it."""
    if dtype.is_floating_point:
        return value
    bits = torch.iinfo(dtype).bits
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.is_signed and value >> (bits - 1) else value


INTEGER = list(
    itertools.product(["add", "max", "min", "and", "or", "xor", "xchg"],
                      [torch.int32, torch.uint32, torch.int64, torch.uint64])
)  # fmt: skip
# Small whole numbers add up exactly in every one of these types.
FLOAT = [("add", torch.float16), ("add", torch.bfloat16), ("add", torch.float32), ("add", torch.float64),
         ("max", torch.float32), ("min", torch.float32), ("max", torch.float64), ("min", torch.float64),
         ("xchg", torch.float32), ("xchg", torch.float64)]  # fmt: skip

CASES = INTEGER + FLOAT
ORDERS = ["relaxed", "acquire", "release", "acq_rel"]


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=str)
def test_atomics(op, dtype, monkeypatch):
    """What came back must be the steps of some order of the values, and memory must hold its end."""
    generator = torch.Generator().manual_seed(4)
    if dtype.is_floating_point:
        x = torch.randint(-4, 5, (N,), generator=generator).to(dtype)
    else:
        info = torch.iinfo(dtype)
        high = min(info.max, 2**63 - 1)
        x = torch.randint(info.min, high, (N,), generator=generator, dtype=torch.int64).to(dtype)
    start = 3 if op != "and" else -1
    out = torch.full((SLOTS,), start, dtype=torch.int64).to(dtype)
    first = out.tolist()
    before = torch.zeros(N, dtype=dtype)
    if op == "xchg":  # Triton 3.7.1 makes a buffer instruction of it that its LLVM doesn't know
        monkeypatch.setenv("AMDGCN_USE_BUFFER_OPS", "0")
    order = ORDERS[CASES.index((op, dtype)) % 4]
    atomic_kernel[GRID](x, out, before, N, SLOTS, op, order, BLOCK)
    for slot in range(SLOTS):
        given, got = x[slot::SLOTS].tolist(), before[slot::SLOTS].tolist()
        after = [wrap(combine(op, old, value), dtype) for old, value in zip(got, given, strict=True)]
        # Every step starts from the first value or where another one ended, and one end is left over.
        assert sorted([first[slot], *after]) == sorted([*got, out[slot].item()])
        if op != "xchg":
            total = first[slot]
            for value in given:
                total = wrap(combine(op, total, value), dtype)
            assert out[slot].item() == total


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_compare_and_swap(dtype):
    out = torch.arange(BLOCK, dtype=dtype) * 2**30
    expected = torch.where(torch.arange(BLOCK) % 3 == 0, out, out + 1)
    x, before, old = torch.full((BLOCK,), -9, dtype=dtype), torch.zeros(BLOCK, dtype=dtype), out.clone()
    compare_and_swap_kernel[(1,)](expected, x, out, before, BLOCK)
    assert before.tolist() == old.tolist()
    assert out.tolist() == [-9 if k % 3 == 0 else value for k, value in enumerate(old.tolist())]


def test_a_lock():
    lock, total = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    order = torch.full((5,), -1, dtype=torch.int32)
    lock_kernel[(5,)](lock, total, order, num_warps=1)
    assert (total.item(), lock.item()) == (5, 0)
    assert sorted(order.tolist()) == list(range(5))
