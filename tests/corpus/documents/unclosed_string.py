# %%
text = '''
# %% swallowed
x = 1
