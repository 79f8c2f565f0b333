# %% [markdown]
# # Other interpreters and their failures

# %%
%%bash --out text
echo captured

# %%
text

# %% tags=["raises-exception"]
%%bash
echo before
exit 3

# %%
%%script --no-raise-error bash
echo tolerated
exit 4

# %% tags=["raises-exception"]
%no_such_magic
