"""Fused Triton kernels for serving in FP8, each with its launch function and its PyTorch reference.

The modules import torch and triton, and nothing of labkit but kernels.fp8, so they can be copied out whole.
"""
