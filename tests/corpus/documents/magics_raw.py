# %%
%matplotlib inline
!ls

# %%
%%bash
ls -l
echo done

# %%
print?
