# %% [markdown]
# # ipywidgets without a front end

# %%
import ipywidgets as widgets
slider = widgets.IntSlider(value=3, max=10)
slider

# %%
slider.observe(lambda change: print("now", change["new"]), names="value")
slider.value = 7

# %%
out = widgets.Output()
box = widgets.VBox([widgets.Label("label"), widgets.Button(description="press")])
box

# %%
widgets.interactive(lambda x: x * 2, x=(0, 5)).children[0].value
