# %% [markdown]
# # A cell that may raise lets the rest go on

# %% tags=["raises-exception"]
raise ValueError("expected")

# %%
print('still here')

# %% tags=["raises-exception"]
{}["missing"]

# %%
print('and here')
