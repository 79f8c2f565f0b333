# %% a
x = 1

# %% [markdown]
# text
