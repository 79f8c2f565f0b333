# %% [markdown]
# # plotly figures as data

# %%
import plotly.graph_objects as go
figure = go.Figure(go.Scatter(y=[1, 3, 2], name="line"))
figure.update_layout(title="a figure")
len(figure.data)

# %%
figure.to_plotly_json()['data'][0]['y']

# %%
bundle = figure._repr_mimebundle_()
sorted(bundle)
