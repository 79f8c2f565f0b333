# %% [markdown]
# # Much text, long lines, many displays

# %%
for i in range(20_000):
    print("line", i)

# %%
print('x' * 1_000_000)

# %%
for i in range(200):
    display(i)

# %%
'y' * 100_000

# %%
list(range(5000))
