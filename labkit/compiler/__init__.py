"""What Triton made of a kernel: stages, compiler passes, assembly listing, registers, layouts."""
