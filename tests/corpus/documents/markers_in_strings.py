# %%
text = '''
# %% not a cell
'''

# %%
s = "# %% neither"
t = '"""'
# %% a cell
u = 1  # """

# %% another
