# %%
# + a list item
# # + escaped
## + also
