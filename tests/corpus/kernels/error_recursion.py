# %% [markdown]
# # Too deep

# %% tags=["raises-exception"]
def down(n):
    return down(n + 1)

down(0)

# %%
print('recovered')
