# %% [markdown]
# # Generators, iterators, itertools

# %%
import itertools
def squares():
    n = 0
    while True:
        got = yield n * n
        n = n + 1 if got is None else got

# %%
list(itertools.islice(squares(), 6))

# %%
gen = squares()
print(next(gen), next(gen), gen.send(10), next(gen))

# %%
list(itertools.accumulate(range(6)))

# %%
squares()

# %% tags=["raises-exception"]
next(iter([]))
