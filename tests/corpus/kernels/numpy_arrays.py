# %% [markdown]
# # Arrays and their printing

# %%
import numpy as np
np.arange(12).reshape(3, 4)

# %%
np.random.default_rng(1).normal(size=3).round(6)

# %%
with np.printoptions(precision=2, suppress=True):
    print(np.linspace(0, 1, 4))

# %%
np.zeros((200, 200))

# %%
np.float64(1) / 3
