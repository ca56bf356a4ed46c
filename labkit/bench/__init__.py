"""Benchmarks: both sides in one run, medians, printed as ratios. Each says what it compares and on what."""
