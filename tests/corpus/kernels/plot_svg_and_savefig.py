# %% [markdown]
# # SVG figures and figures written to files

# %%
%config InlineBackend.figure_formats = ["png"]
import io
import matplotlib.pyplot as plt
fig = plt.figure(figsize=(1, 1))
buffer = io.BytesIO()
fig.savefig(buffer, format="png")
plt.close(fig)
print(buffer.getvalue()[:8])

# %%
fig
