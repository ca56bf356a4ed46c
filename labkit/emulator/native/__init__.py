"""The compiled fast path: the instructions that kernels spend their time in, wave by wave, by Numba.

The NumPy functions beside this package are the definition of every instruction; each of those here is held
to the same tests. A program (`plan`, `encode`) becomes two tables of numbers; `interpreter.run` executes them
for one wave after the other, whose registers then stay in the core's cache. What it does not know, and
whatever is unusual - an access outside its tensor, a race in LDS - it leaves to the NumPy step of that
instruction, which finds out and tells.
"""
