# %% [markdown]
# # Warnings of a C library

# %%
import numpy as np
np.array([1.0, 0.0]) / np.array([0.0, 0.0])

# %%
with np.errstate(all="ignore"):
    print(np.log(np.array([0.0])))
