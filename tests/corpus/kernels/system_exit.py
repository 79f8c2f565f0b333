# %% [markdown]
# # sys.exit(0) ends the task well

# %%
print('work')

# %%
import sys
print("leaving")
sys.exit(0)

# %%
print('never')
