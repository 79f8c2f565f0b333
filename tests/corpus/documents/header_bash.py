# ---
# jupyter:
#   kernelspec:
#     display_name: Bash
#     language: bash
#     name: bash
# ---

# %%
echo 'it is'

# %% tags=["parameters"]
name=world  # who to greet
