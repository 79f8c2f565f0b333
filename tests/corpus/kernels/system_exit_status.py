# %% [markdown]
# # sys.exit(3) does not

# %%
import sys

# %% tags=["raises-exception"]
sys.exit(3)

# %% tags=["raises-exception"]
sys.exit("a message")

# %%
print('after')
