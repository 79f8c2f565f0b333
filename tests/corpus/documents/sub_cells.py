# %% top
x = 1

# %%% sub
y = 2

# %%%% deeper [markdown]
# z

# %%%
not_a_cell = 1
