"""Every answer that the checks are tried with: (exercise, kernel), for mutants with what must be said."""

from labkit.checks import fused, hierarchy, pipeline
from tests.mutants import masked_tail_kernels as tail
from tests.mutants import saturate_kernels as fp8
from tests.mutants import wide_loads_kernels as wide

RIGHT = [
    (hierarchy.masked_tail, tail.right),
    (hierarchy.masked_tail, tail.right_with_other_and_moved_pointers),
    (hierarchy.masked_tail, tail.right_by_a_helper),
    (pipeline.wide_loads, wide.right),
    (pipeline.wide_loads, wide.right_by_rounding),
    (fused.saturate, fp8.right),
    (fused.saturate, fp8.right_by_where),
    (fused.saturate, fp8.right_by_the_cast_alone),
]
# Not right: a fault or a wrong result.
WRONG = [
    (hierarchy.masked_tail, tail.no_mask, "give both loads mask=offsets < n"),
    (hierarchy.masked_tail, tail.store_unmasked, "the store writes behind the end"),
    (hierarchy.masked_tail, tail.one_too_many, "write <, not <="),
    (hierarchy.masked_tail, tail.one_too_few, "leaves out elements at the end"),
    (hierarchy.masked_tail, tail.first_block_only, "only the first block was written"),
    (hierarchy.masked_tail, tail.gaps_between_programs, "neighbouring programs are BLOCK elements apart"),
    (hierarchy.masked_tail, tail.one_input_twice, "look at what you add"),
    (pipeline.wide_loads, wide.no_mask_at_all, "is start + i masked with i < length"),
    (pipeline.wide_loads, wide.store_unmasked, "may not replace the mask"),
    (pipeline.wide_loads, wide.length_rounded_too_far, "the mask ends before length"),
    (pipeline.wide_loads, wide.start_rounded_too_far, "a row was read from the wrong place"),
    (fused.saturate, fp8.nan_lost, "the clamp swallowed NaN"),
    (fused.saturate, fp8.multiplied, "multiplied by scale"),
    (fused.saturate, fp8.clamped_first, "clamped before the division"),
    (fused.saturate, fp8.limit_of_the_other_chip, "240 is the limit of MI300X"),
    (fused.saturate, fp8.sign_by_division, "became NaN"),
    (fused.saturate, fp8.no_mask_on_the_store, "pass mask=offsets < n to the load"),
]
# Right, and the goal is missed.
MISSED = [
    (hierarchy.masked_tail, tail.strided_lanes, "A modulo, a stride or n - 1"),
    (hierarchy.masked_tail, tail.mask_with_n_less_one, "A modulo, a stride or n - 1"),
    (hierarchy.masked_tail, tail.every_program_does_two_blocks, "loaded more than once"),
    (hierarchy.masked_tail, tail.stored_twice, "stored more than once"),
    (pipeline.wide_loads, wide.no_hint, "the mask i < length may end between two elements"),
    (pipeline.wide_loads, wide.only_length_hinted, "but not that start is a multiple of 16"),
    (pipeline.wide_loads, wide.only_start_hinted, "the mask i < length may end between two elements"),
]
