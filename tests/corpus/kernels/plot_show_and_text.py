# %% [markdown]
# # plt.show between prints keeps the order

# %%
%matplotlib inline
import matplotlib.pyplot as plt

# %%
print("before")
plt.figure(figsize=(2, 2))
plt.plot([1, 3, 2])
plt.show()
print("after")
