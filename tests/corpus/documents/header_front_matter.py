# ---
# title: A title
# author: me
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     name: python3
#   authors:
#   - name: Zoë
# ---

# %%
x = 1
