# %% [markdown]
# # display_id and update_display

# %%
from IPython.display import HTML, display, update_display
handle = display("first", display_id="spot")

# %%
handle.update('second')

# %%
update_display(HTML('<b>third</b>'), display_id='spot')

# %%
for i in range(5):
    handle.update(i)
print("done")

# %%
same = display("one", display_id="twice"), display("two", display_id="twice")
update_display("both", display_id="twice")
