"""Answers to the exercises of labkit.checks.pipeline.layout."""

from labkit.checks import pipeline
from tests.mutants.kernels import wide_loads as wide

RIGHT = [
    (pipeline.wide_loads, wide.right),
    (pipeline.wide_loads, wide.right_by_rounding),
]
# Not right: a fault or a wrong result.
WRONG = [
    (pipeline.wide_loads, wide.no_mask_at_all, "is start + i masked with i < length"),
    (pipeline.wide_loads, wide.store_unmasked, "may not replace the mask"),
    (pipeline.wide_loads, wide.length_rounded_too_far, "the mask ends before length"),
    (pipeline.wide_loads, wide.start_rounded_too_far, "a row was read from the wrong place"),
]
# Right, and the goal is missed.
MISSED = [
    (pipeline.wide_loads, wide.no_hint, "the mask i < length may end between two elements"),
    (pipeline.wide_loads, wide.only_length_hinted, "but not that start is a multiple of 16"),
    (pipeline.wide_loads, wide.only_start_hinted, "the mask i < length may end between two elements"),
]
