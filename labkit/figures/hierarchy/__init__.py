"""Pictures of notebook 01, one module a part of the machine. Plain data in, a Picture out."""

from labkit.figures.hierarchy.wave import (
    exec_over_time,
    lines_against_stride,
    nested_gpu,
    reduction_tree,
    registers_over_time,
)

__all__ = ["exec_over_time", "lines_against_stride", "nested_gpu", "reduction_tree", "registers_over_time"]
