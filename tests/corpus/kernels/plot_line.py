# %% [markdown]
# # A line plot, inline without asking

# %%
import matplotlib.pyplot as plt
import numpy as np

# %%
x = np.linspace(0, 6, 50)
plt.plot(x, np.sin(x), label="sin")
plt.legend();

# %%
print(plt.get_fignums())
