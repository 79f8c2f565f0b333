# %% [markdown]
# # ! and !! with Python values in them

# %%
!echo hello

# %%
name = "quire"
!echo {name} $name

# %%
lines = !printf 'a\nb\nc\n'
print(lines.n.upper(), len(lines))

# %%
!!printf 'x\ny\n'

# %%
!exit 3
print(_exit_code)

# %%
files = !ls
list(files)
