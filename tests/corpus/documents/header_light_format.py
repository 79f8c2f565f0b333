# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: light
# ---

# A paragraph.

x = 1

# + tags=["parameters"]
n = 1
# -
