# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% tags=["active-py"]
print("only in the script")

# %% tags=["active-ipynb"]
# print("only in the notebook")

# %% active="py"
x = 1

# %% active=""
# raw
