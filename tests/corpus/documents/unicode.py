# %% Größe – 数据
s = 'héllo 🌍'

# %% [markdown] name="naïve"
# ünï
