# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% language="bash"
# echo "hi"
# ls

# %% language="bash" magic_args="-e"
# false

# %% language="unheard"
# x

# %% language="python"
x = 1
