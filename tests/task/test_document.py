from __future__ import annotations

import pytest

from quire.errors import DocumentError
from quire.task import percent

DOC = percent.loads(
    '# %% [markdown]\n# ## The title\n\n# %% load\nx = 1\n\n# %% name="n"\ny = 2\n\n'
    "# %% load\nz = 3\n"
)


def test_cells_are_found_by_id_index_title_and_name():
    assert DOC.title == "The title"
    assert DOC.find(1) == DOC.find("1") == DOC.find(DOC.cells[1].id) == 1
    assert DOC.find(-1) == 3
    assert DOC.find("n") == 2


@pytest.mark.parametrize("address", ["load", "nothing", "99", 4, -5])
def test_what_cannot_be_found_says_why(address):
    with pytest.raises(DocumentError) as caught:
        DOC.find(address)
    assert caught.value.hint


def test_a_kernelspec_that_is_no_mapping_is_no_kernel():
    assert percent.loads("# ---\n# jupyter:\n#   kernelspec: 3\n# ---\n").kernel_name == ""
