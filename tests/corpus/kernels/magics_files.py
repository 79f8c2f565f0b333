# %% [markdown]
# # writefile, run, load_ext, cd, pwd, env

# %%
%%writefile part.py
WORD = "from the file"
print("running", __name__)

# %%
%run part.py

# %%
print(WORD)

# %%
%env QUIRE_WORD=seven

# %%
import os
print(os.environ["QUIRE_WORD"])

# %%
%mkdir -p below
%cd -q below
%pwd

# %%
%load_ext autoreload
%autoreload 2

# %%
%%writefile -a more.txt
one more line

# %%
print(open('more.txt').read())
