"""Answers to the exercises of labkit.checks.hierarchy.wave."""

from labkit.checks import hierarchy
from tests.mutants.kernels import masked_tail as tail

RIGHT = [
    (hierarchy.masked_tail, tail.right),
    (hierarchy.masked_tail, tail.right_with_other_and_moved_pointers),
    (hierarchy.masked_tail, tail.right_by_a_helper),
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
]
# Right, and the goal is missed.
MISSED = [
    (hierarchy.masked_tail, tail.strided_lanes, "A modulo, a stride or n - 1"),
    (hierarchy.masked_tail, tail.mask_with_n_less_one, "A modulo, a stride or n - 1"),
    (hierarchy.masked_tail, tail.every_program_does_two_blocks, "loaded more than once"),
    (hierarchy.masked_tail, tail.stored_twice, "stored more than once"),
]
