# %% [markdown]
# # Nobody is there to answer

# %%
try:
    input("name? ")
except Exception as error:
    print(type(error).__name__)

# %%
import getpass
try:
    getpass.getpass()
except Exception as error:
    print(type(error).__name__)

# %%
print('went on')
