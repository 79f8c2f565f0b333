# %% [markdown]
# # In, Out and underscores

# %%
6 * 7

# %%
_ + 1

# %%
_1, Out[1], __

# %%
In[1]

# %%
print(sorted(Out))

# %%
'hidden';

# %%
_i

# %%
len(In)
