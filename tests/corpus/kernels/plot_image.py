# %% [markdown]
# # imshow with a colour bar

# %%
import numpy as np
import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(3, 2))
shown = ax.imshow(np.arange(12).reshape(3, 4), cmap="viridis")
fig.colorbar(shown)
plt.show()
