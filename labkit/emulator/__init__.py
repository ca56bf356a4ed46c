"""An emulated MI300X: executes the gfx942 assembly that Triton emits, on CPU tensors, lane by lane."""
