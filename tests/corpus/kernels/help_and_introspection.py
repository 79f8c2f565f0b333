# %% [markdown]
# # help, dir, signatures, docstrings

# %%
def documented(a: int, b: str = "x") -> bool:
    "Says what it does."
    return True

# %%
help(documented)

# %%
import inspect; inspect.signature(documented)

# %%
documented.__doc__, documented.__annotations__

# %%
print(inspect.getsource(documented))

# %%
help(len)

# %%
# documented?

# %%
[n for n in dir(documented) if not n.startswith('_')]
