# %% [markdown]
# # bash, sh, html, latex, markdown, javascript, svg cells

# %%
%%bash
for i in 1 2 3; do echo "line $i"; done

# %%
%%sh
echo sh

# %%
%%html
<b>bold</b>

# %%
%%latex
$x^2$

# %%
%%markdown
*emphasis*

# %%
%%javascript
1 + 1

# %%
%%svg
<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="4" height="4"/></svg>
