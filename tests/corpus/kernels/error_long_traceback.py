# %% [markdown]
# # Many frames of the notebook's own

# %%
def make(n):
    def call():
        return calls[n + 1]()
    return call

def last():
    raise LookupError("at the bottom")

calls = [make(n) for n in range(12)] + [last]

# %% tags=["raises-exception"]
calls[0]()

# %% tags=["raises-exception"]
sorted([3, "a", None])
