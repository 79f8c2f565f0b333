# %% [markdown]
# # Objects that show themselves as bytes, as pictures of PIL do

# %%
class Dot:
    def _repr_png_(self):
        return b"\x89PNG\r\n\x1a\n\x00\xff"
    def _repr_jpeg_(self):
        return b"\xff\xd8\xff\x00", {"width": 3}
    def __repr__(self):
        return "a dot"
Dot()

# %%
display(Dot(), Dot())

# %%
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None):
        import datetime, fractions
        return {
            "text/plain": "bundle",
            "application/pdf": b"%PDF-1.4",
            "application/json": {"half": fractions.Fraction(1, 2), "day": datetime.date(2026, 1, 2),
                                 "three": range(3), "raw": b"abc"},
        }
Bundle()

# %%
display({"image/png": b"\x89PNG", "text/plain": "raw"}, raw=True)
