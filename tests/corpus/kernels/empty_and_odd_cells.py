# %% [markdown]
# # Cells with nothing, comments, semicolons

# %%
# only a comment

# %%
x = 1; y = 2; x, y

# %%
if x:
    pass

# %%
x;

# %%
"""docstring only"""

# %%
for i in range(2): i

# %%
def f():
    return 1
f() ; f()

# %%
(
    1
    + 2
)

# %%
lambda: 0

# %%
print('tab\there')

# %%
del x
'x' in globals()
