# %% [markdown]
# # who, whos, reset_selective, precision, pprint

# %%
alpha = 1
beta = [1, 2, 3]
gamma = "text"

# %%
%who

# %%
%who int

# %%
%who_ls

# %%
%reset_selective -f gamma

# %%
'gamma' in globals()

# %%
%precision 3

# %%
3.14159265

# %%
%pprint

# %%
list(range(60))

# %%
print('end')
