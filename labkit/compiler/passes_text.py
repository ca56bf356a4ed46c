"""One sentence for each compiler pass whose purpose we know from its documentation or its effect.

Keys are the compiler's own pass names. A name that is missing here is shown without a sentence.
"""

from __future__ import annotations

DESCRIPTIONS: dict[str, str] = {
    # MLIR's general passes.
    "inline": "Puts the body of each called function where it is called.",
    "canonicalize": "Folds constants and rewrites each operation into its simplest usual form.",
    "cse": "Keeps one of several operations that compute the same value.",
    "symbol-dce": "Deletes functions that nothing calls any more.",
    "sccp": "Follows constants through branches and replaces what turns out constant.",
    "convert-scf-to-cf": "Turns loops and ifs into basic blocks with branches.",
    "convert-cf-to-llvm": "Rewrites branches between blocks in LLVM's dialect.",
    "convert-arith-to-llvm": "Rewrites what is left of scalar arithmetic in LLVM's dialect.",
    "convert-index-to-llvm": "Rewrites index arithmetic in LLVM's dialect.",
    "reconcile-unrealized-casts": "Removes pairs of placeholder casts that cancel out.",
    # Triton IR: no hardware in sight yet.
    "triton-rewrite-tensor-pointer": "Replaces block pointers by plain pointers and masks.",
    "triton-rewrite-tensor-descriptor-to-pointer": (
        "Replaces tensor descriptors by plain pointers and masks, for chips without such hardware."
    ),
    "triton-combine": "Merges small patterns, such as a dot and the add of its accumulator.",
    "triton-reorder-broadcast": (
        "Moves splats and broadcasts after elementwise work, so that less is computed."
    ),
    "triton-licm": "Moves out of a loop what is the same in every turn of it.",
    "triton-loop-unroll": "Repeats the body of loops that ask for it (loop_unroll_factor).",
    "triton-loop-aware-cse": "Removes repeated computations, also among the values that a loop carries.",
    # TritonGPU IR: every tensor has a layout.
    "convert-triton-to-tritongpu": (
        "Gives each tensor a layout: which lane of which wave holds which element."
    ),
    "tritongpu-coalesce": (
        "Chooses layouts for loads and stores in which neighbouring lanes touch neighbouring addresses."
    ),
    "tritongpu-F32DotTC": "Splits FP32 dots into several lower-precision ones, where the kernel asks for it.",
    "tritongpu-remove-layout-conversions": "Chooses layouts so that fewer conversions between them are left.",
    "tritongpu-optimize-thread-locality": (
        "Lets each lane reduce what it holds before lanes talk to each other."
    ),
    "tritongpu-accelerate-matmul": "Gives dots a layout that fits NVIDIA's tensor cores.",
    "tritongpu-fuse-nested-loops": (
        "Merges nested loops that ask for it into one, so that it can be pipelined."
    ),
    "tritongpu-reduce-data-duplication": (
        "Splits some layout conversions into a store to LDS and a load, so that one copy serves several uses."
    ),
    "tritongpu-reorder-instructions": "Moves operations to where they need fewer registers.",
    "tritongpu-prefetch": "Loads part of the next dot's operands from shared memory ahead of its use.",
    "tritongpu-pipeline": "Overlaps the loads of later loop turns with the arithmetic of this one.",
    "tritongpu-assign-latencies": "Notes how many loop turns ahead each load of a pipelined loop starts.",
    "tritongpu-schedule-loops": "Assigns the operations of a pipelined loop to stages.",
    # AMD's own.
    "tritonamdgpu-accelerate-matmul": "Gives dots the layout of an MFMA instruction and picks its shape.",
    "tritonamdgpu-optimize-epilogue": (
        "Stores an MFMA result straight from the layout it has, with no conversion through LDS."
    ),
    "tritonamdgpu-optimize-dot-operands": "Prepares the layouts in which dot operands reach the MFMA.",
    "tritonamdgpu-hoist-layout-conversions": "Moves layout conversions of dot operands out of loops.",
    "tritonamdgpu-sink-layout-conversions": "Moves layout conversions down to their first use.",
    "tritonamdgpu-schedule-loops": "Assigns the loads and dots of a loop to pipeline stages.",
    "tritonamdgpu-pipeline": (
        "Overlaps the global loads of later loop turns with the MFMAs of this one, through buffers in LDS."
    ),
    "tritonamdgpu-in-thread-transpose": (
        "Transposes within a lane's registers, so that LDS is written and read in wide pieces."
    ),
    "tritonamdgpu-move-up-prologue-loads": (
        "Moves the loads before a pipelined loop up, to start them sooner."
    ),
    "tritonamdgpu-block-pingpong": (
        "Splits a loop so that two waves of a SIMD take turns: one computes while the other loads."
    ),
    "tritonamdgpu-canonicalize-pointers": (
        "Splits each pointer into one base for the whole wave and an offset for each lane."
    ),
    "tritonamdgpu-convert-buffer-ops": (
        "Turns loads and stores into buffer instructions where the offset is known to fit 32 bits."
    ),
    "tritonamdgpu-fold-true-cmpi": "Removes comparisons that value ranges prove to be always true.",
    "tritonamdgpu-update-async-wait-count": "Sets how many loads in flight each asynchronous wait may leave.",
    # To LLVM.
    "allocate-shared-memory": "Assigns each LDS buffer its offset.",
    "allocate-amdgpu-shared-memory": "Assigns each LDS buffer its offset.",
    "allocate-shared-memory-nv": "Assigns each shared-memory buffer its offset.",
    "convert-triton-amdgpu-to-llvm": (
        "Writes out what one lane does: tensors become values in its registers, in LLVM's dialect."
    ),
    "convert-triton-gpu-to-llvm": (
        "Writes out what one thread does: tensors become values in its registers, in LLVM's dialect."
    ),
    "convert-builtin-func-to-llvm": "Replaces calls of Triton's AMD helper functions by LLVM operations.",
    "enable-line-info": "Attaches the source line to each operation, which the assembly shows as .loc.",
    "to-llvm-ir": "Translates LLVM's dialect of MLIR into LLVM IR proper (labkit's own entry).",
    "llvm-o3": "LLVM's optimisation pipeline at level O3, taken as one step (labkit's own entry).",
}
