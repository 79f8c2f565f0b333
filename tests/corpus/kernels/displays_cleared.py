# %% [markdown]
# # clear_output

# %%
from IPython.display import clear_output, display
for i in range(4):
    clear_output(wait=True)
    print("step", i)

# %%
print("gone")
display("gone too")
clear_output()
print("kept")

# %%
print("stays, since nothing follows")
clear_output(wait=True)
