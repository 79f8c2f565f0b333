# %% [markdown]
# # An uncaught error ends the notebook

# %%
print("one")

# %%
def divide(a, b):
    return a / b

divide(1, 0)

# %%
print('never')
