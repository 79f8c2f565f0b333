# %% [markdown]
# # Causes and contexts

# %% tags=["raises-exception"]
try:
    int("x")
except ValueError as error:
    raise RuntimeError("could not parse") from error

# %% tags=["raises-exception"]
try:
    1 / 0
except ZeroDivisionError:
    undefined_name

# %% tags=["raises-exception"]
try:
    1 / 0
except ZeroDivisionError:
    raise KeyError("alone") from None
