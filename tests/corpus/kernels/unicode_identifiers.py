# %% [markdown]
# # Names that are not ASCII

# %%
größe = 3
π = 3.14159
def площадь(r):
    return π * r ** 2
площадь(größe)

# %%
class Größe:
    μ = 1
Größe.μ

# %%
print(sorted(n for n in globals() if not n.isascii()))
