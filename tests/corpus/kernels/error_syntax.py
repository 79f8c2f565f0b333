# %% [markdown]
# # Code that does not parse

# %% tags=["raises-exception"]
def broken(:
    pass

# %% tags=["raises-exception"]
if True:
print("indent")

# %% tags=["raises-exception"]
x = "unterminated

# %%
print('fine')
