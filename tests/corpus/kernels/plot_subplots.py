# %% [markdown]
# # Several axes in a figure and several figures in a cell

# %%
import matplotlib.pyplot as plt
fig, axes = plt.subplots(1, 2, figsize=(4, 2))
axes[0].bar(["a", "b"], [1, 2])
axes[1].scatter([1, 2], [2, 1])
fig.suptitle("two axes")
other = plt.figure(figsize=(2, 2))

# %%
fig
