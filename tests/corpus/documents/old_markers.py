# <codecell>
x = 1
# In[3]:
y = 2
# In[ ]:
  # %% indented
z = 3
