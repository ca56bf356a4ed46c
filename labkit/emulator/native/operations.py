"""The numbers by which the interpreter's two tables name things, and the tables' columns."""

from __future__ import annotations

from enum import IntEnum, auto

import numpy as np


class Source(IntEnum):
    """Where an operand comes from."""

    VECTOR = 0  # a vector register; `at` is its row
    SCALAR = auto()  # a scalar register, alike for every lane
    CONSTANT = auto()  # `at` is the value
    MASK = auto()  # a lane mask in two scalar registers: 0 or 1 a lane


class Result(IntEnum):
    """Where a vector operation's result goes."""

    NONE = 0
    VECTOR = auto()  # the field `keep` << `shift` of vector register `target`
    PAIR = auto()  # 64 bits in vector registers `target` and the next
    MASK = auto()  # a lane mask in scalar registers `target` and the next
    BOTH = auto()  # 32 bits in `target`, and a lane mask in scalar registers `second`
    BOTH_PAIR = auto()  # 64 bits in `target`, and a lane mask in scalar registers `second`


class Op(IntEnum):
    """What a row does. The names are those of the instructions where one stands for one."""

    V_MOV_B32 = 0
    V_NOT_B32 = auto()
    V_AND_B32 = auto()
    V_OR_B32 = auto()
    V_XOR_B32 = auto()
    V_AND_OR_B32 = auto()
    V_OR3_B32 = auto()
    V_ADD_U32 = auto()
    V_SUB_U32 = auto()
    V_SUBREV_U32 = auto()
    V_ADD3_U32 = auto()
    V_XAD_U32 = auto()
    V_LSHL_ADD_U32 = auto()
    V_ADD_LSHL_U32 = auto()
    V_LSHL_OR_B32 = auto()
    V_LSHLREV_B32 = auto()
    V_LSHRREV_B32 = auto()
    V_ASHRREV_I32 = auto()
    V_MUL_LO_U32 = auto()
    V_MUL_HI_U32 = auto()
    V_MUL_U32_U24 = auto()
    V_MAD_U32_U24 = auto()
    V_MUL_I32_I24 = auto()
    V_MAD_I32_I24 = auto()
    V_MIN_U32 = auto()
    V_MAX_U32 = auto()
    V_MIN_I32 = auto()
    V_MAX_I32 = auto()
    V_CNDMASK_B32 = auto()
    V_BFE_U32 = auto()
    V_BFI_B32 = auto()
    V_BFREV_B32 = auto()
    V_PERM_B32 = auto()
    V_ALIGNBIT_B32 = auto()
    V_PACK_B32_F16 = auto()
    V_ADD_CO_U32 = auto()
    V_ADDC_CO_U32 = auto()
    V_MAD_U64_U32 = auto()
    V_LSHLREV_B64 = auto()
    COMPARE_U32 = auto()  # `p0`: the relations that count, a bit each: less, equal, greater
    COMPARE_I32 = auto()
    COMPARE_F32 = auto()  # and a fourth bit: unordered
    LAST_INTEGER = COMPARE_F32
    V_LSHL_ADD_U64 = auto()
    V_ADD_F32 = auto()
    V_SUB_F32 = auto()
    V_SUBREV_F32 = auto()
    V_MUL_F32 = auto()
    V_FMA_F32 = auto()
    V_MAX_F32 = auto()
    V_MIN_F32 = auto()
    V_MAX3_F32 = auto()
    V_MIN3_F32 = auto()
    V_MED3_F32 = auto()
    V_RNDNE_F32 = auto()
    V_FLOOR_F32 = auto()
    V_LDEXP_F32 = auto()
    V_RCP_F32 = auto()
    V_RSQ_F32 = auto()
    V_SQRT_F32 = auto()
    V_EXP_F32 = auto()
    V_DIV_SCALE_F32 = auto()
    V_DIV_FMAS_F32 = auto()
    V_DIV_FIXUP_F32 = auto()
    V_ADD_F16 = auto()
    V_SUB_F16 = auto()
    V_MUL_F16 = auto()
    V_FMA_MIX_F32 = auto()  # `p0`: a bit for each source that is a half
    V_FMA_MIX_F16 = auto()
    V_CVT_F32_F16 = auto()
    V_CVT_F16_F32 = auto()
    V_CVT_F32_I32 = auto()
    V_CVT_F32_U32 = auto()
    V_CVT_I32_F32 = auto()
    V_CVT_U32_F32 = auto()
    V_CVT_PK_BF16_F32 = auto()
    V_CVT_PK_FP8_F32 = auto()  # `p0`: 0 for fp8, 1 for bf8
    V_CVT_F32_FP8 = auto()
    LAST_VECTOR = V_CVT_F32_FP8
    V_READFIRSTLANE_B32 = auto()
    V_READLANE_B32 = auto()
    V_WRITELANE_B32 = auto()
    DS_BPERMUTE_B32 = auto()
    GLOBAL_LOAD = auto()
    GLOBAL_STORE = auto()
    LDS_READ = auto()
    LDS_WRITE = auto()
    MATRIX = auto()
    LAST_WAVE = MATRIX
    # Scalar operations from here. `p0`: the result's bits, 0 where only SCC is written; `p2`, `p3`: those of
    # the first and of the second source.
    S_MOV = auto()
    S_ADD_U32 = auto()
    S_ADDC_U32 = auto()
    S_SUB_U32 = auto()
    S_ADD_I32 = auto()
    S_SUB_I32 = auto()
    S_MUL_I32 = auto()
    S_MUL_HI_U32 = auto()
    S_AND = auto()
    S_OR = auto()
    S_XOR = auto()
    S_ANDN2 = auto()
    S_LSHL = auto()
    S_LSHR = auto()
    S_ASHR_I32 = auto()
    S_CSELECT = auto()
    S_COMPARE_I32 = auto()  # `p1`: the relations that count
    S_COMPARE_U32 = auto()
    S_COMPARE_U64 = auto()
    LAST_SCALAR = S_COMPARE_U64
    S_LOAD = auto()  # `p0`: how many words, `p1`: a constant offset
    S_SAVEEXEC = auto()  # `p0`: and, or, xor, andn2 by their place in SAVEEXEC
    S_SET_SATURATE = auto()
    BLOCK = auto()  # a block begins; `p0`: its number
    BRANCH = auto()  # `p0`: when, a `When`; `p1`: the row to go on at
    BARRIER = auto()
    END = auto()
    NUMPY = auto()  # an instruction that the fast path does not know


class When(IntEnum):
    """The condition of a branch."""

    ALWAYS = 0
    SCC0 = auto()
    SCC1 = auto()
    VCCZ = auto()
    VCCNZ = auto()
    EXECZ = auto()
    EXECNZ = auto()


class Stop(IntEnum):
    """Why a wave stands still."""

    RUNNING = 0  # it has had its turn
    NUMPY = auto()  # a NumPy step must execute the row where it stands
    BARRIER = auto()
    ENDED = auto()


SAVEEXEC = ("and", "or", "xor", "andn2")
# The relations of a compare as the bits of `p0`.
LESS, EQUAL, GREATER, UNORDERED = 1, 2, 4, 8
MOST_SOURCES = 6

ROW = np.dtype([(name, "i8") for name in (
    "op", "index", "sources", "result", "target", "second", "shift", "keep",
    "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7",
    "dpp",  # 0, or 1 + the row of CHIP's table that says which lane each lane's first source comes from
    "bound",  # a lane without a source lane reads 0 (else it keeps its result)
    "may_write",  # lanes that DPP's row and bank masks allow, as bits
)])  # fmt: skip
# A source is ((bits >> shift) & keep) ^ flip: a half or a byte of a register, |x| and -x.
SOURCE = np.dtype([("kind", "i8"), ("at", "i8"), ("shift", "u4"), ("keep", "u4"), ("flip", "u4"), ("", "u4")])

# What the interpreter works on: a launch's shape and settings, and the addresses of its state and tables.
CHIP = np.dtype([(name, "i8") for name in (
    "count",  # 64, a wave's lanes: LLVM makes vector instructions of a loop whose length it does not know
    "waves",
    "waves_per_workgroup",
    "pitch",  # from one vector register to the next, in words
    "v",  # uint32 [registers, pitch], vector and then accumulation registers
    "s",  # uint32 [128, waves]
    "scc",  # uint8 [waves]
    "saturate",  # uint8 [waves], MODE.FP16_OVFL
    "counting",
    "recording",  # whether the lines of accesses are kept, as lines.LineRecorder tells:
    "lines",  # int64 [.., 2], the records
    "lines_used",  # int64 [2], how many there are, and for how many there is room
    "line_bases",  # int64, of each allocation: the number of its first line
    "workgroups",  # int64, of each workgroup here: its number in the grid
    "allocations",  # how many there are
    "bases",  # int64, of each allocation: its first address,
    "ends",  # the one after its last byte,
    "word_ends",  # the one after its last whole word,
    "touched",  # and the address of its marks, Allocation.touched
    "limits",  # int64, what launch_memory.permitted says: base and end of each range, and
    "limits_at",  # int64 [instructions + 1], where each instruction's ranges begin
    "traffic",  # int64 [instructions, traffic.Count]
    "checking",
    "lds",  # all workgroups' LDS one after the other
    "lds_size",  # bytes of a workgroup's part
    "written",  # lds_shadow's marks, a byte for each of LDS
    "writer",
    "reader",
    "lds_traffic",  # int64 [instructions, traffic.LdsCount]
    "memo",  # int64 [2 * instructions, 67], see lds.same_pattern
    "phases",  # int64 [4, 64], traffic.LDS_PHASES
    "to_fp8",  # uint8 [format, saturate, 65536]
    "from_fp8",  # uint32 [format, 256]
    "executions",  # int64 [blocks]
    "lanes",  # int64 [blocks]
    "dpp",  # int64 [.., 64]: the lane that each lane reads, -1 for none
    # Scratch of the interpreter:
    "operands",  # uint32 [6, 64]
    "result",  # uint32 [8, 64]
    "places",  # int64 [64], a lane's address
    "seen",  # int64 [64]
    "banks",  # int64 [32, 34]
    "left",  # float32 [64, 32]
    "right",
    "product",  # float32 [32, 32]
)])  # fmt: skip
