from answerkey.text.normalise import alike, word_diff


def test_what_went_comes_before_what_came():
    pieces = word_diff("It is in Montrose today.", "It is in Grand Junction today.")
    assert [tuple(piece) for piece in pieces] == [
        ("same", "It is in "),
        ("removed", "Montrose"),
        ("added", "Grand Junction"),
        ("same", " today."),
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


def test_a_number_is_one_word_and_keeps_its_place():
    pieces = word_diff("The total is $3,588.30.", "It came to $3,588.30 (5 transactions).")
    assert [tuple(piece) for piece in pieces] == [
        ("removed", "The total is"),
        ("added", "It came to"),
        ("same", " $3,588.30"),
        ("added", " (5 transactions)"),
        ("same", "."),
    ]
    assert ("removed", "3,588.30") in word_diff("$3,588.30", "$3,588.31")


def test_how_much_two_texts_share():
    assert alike(word_diff("", "")) == 1.0
    assert alike(word_diff("the same", "the same")) == 1.0
    assert alike(word_diff("one thing", "quite other")) < 0.2
