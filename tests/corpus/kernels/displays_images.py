# %% [markdown]
# # Images, audio, files

# %%
import base64
from IPython.display import Audio, FileLink, Image
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
Image(PIXEL)

# %%
Image(PIXEL, width=20, alt='a dot')

# %%
b'bytes', bytearray(b'x')

# %%
from IPython.display import display
display(Image(PIXEL, format="png"), display_id="dot");

# %%
Image(url='https://example.com/x.png')

# %%
FileLink('nothing.txt')
