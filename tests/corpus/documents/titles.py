# %% load data
x = 1

# %% a  b   c

#%% close
y = 2

# %% with (x=1) inside
z = 3

# %% a title {with braces}
