import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from answerkey.comparison.texts import TextsBuilder


@given(st.lists(st.lists(st.text(max_size=20), max_size=6), max_size=6))
def test_texts_come_back_as_they_were(batches: list[list[str]]) -> None:
    builder = TextsBuilder()
    for batch in batches:
        builder.add(batch)
    packed = builder.texts()
    wanted = [text for batch in batches for text in batch]
    assert list(packed) == wanted
    assert [packed[i] for i in range(len(packed))] == wanted
    assert packed[-2:] == wanted[-2:]
    every_second = np.arange(0, len(wanted), 2)
    assert list(packed.chosen(every_second)) == wanted[::2]
