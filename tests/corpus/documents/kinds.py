# %% [markdown]
# # Title
#
# text

# %% [md]
# short form

# %% [raw]
# raw *text*

# %%
1 + 1
