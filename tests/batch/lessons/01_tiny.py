# %% [markdown]
# # A lesson for tests
# The mean of squares is $\frac{1}{n}\sum_i x_i^2$, and a dollar in code stays: `$HOME`.

# %% tags=["parameters"]
n = 3  # type: int. How many numbers


# %%
def square(x):
    ### BEGIN SOLUTION
    return x * x
    ### END SOLUTION


# %%
squares = [square(i) for i in range(n)]
print(squares)

# %%
squares
