from answerkey.text.differences import word_diff


def test_what_went_comes_before_what_came():
    pieces = word_diff("It is in Montrose today.", "It is in Grand Junction today.")
    assert [tuple(piece) for piece in pieces] == [
        ("same", "It is in "),
        ("removed", "Montrose "),
        ("added", "Grand Junction "),
        ("same", "today."),
    ]


def test_both_texts_can_be_read_back():
    before, after = "a  b\nc, d", "a b c; e\n"
    pieces = word_diff(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "added") == before
    assert "".join(piece.text for piece in pieces if piece.kind != "removed") == after


def test_nothing_and_the_same():
    assert word_diff("", "") == []
    assert [piece.kind for piece in word_diff("same", "same")] == ["same"]
    assert [piece.kind for piece in word_diff("", "new")] == ["added"]
