import os

# %% first
x = 1

# %%
y = 2
