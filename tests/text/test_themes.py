from answerkey.text.normalise import find_themes


def test_pairs_of_words_that_several_comments_share_come_first():
    themes = find_themes(
        [
            ("The wrong number again", False),
            ("wrong number, sigh", False),
            ("Such a fast answer", True),
            ("fast answer!", True),
            ("unique remark", True),
        ]
    )
    assert [(theme.words, theme.comments, theme.negative) for theme in themes] == [
        ("fast answer", 2, 0),
        ("wrong number", 2, 2),
    ]
    assert themes[1].example == "The wrong number again"


def test_no_theme_without_two_comments_that_agree():
    assert find_themes([("one", True), ("two", False), ("", True)]) == []


def test_words_of_the_same_comments_are_one_theme():
    themes = find_themes([("exactly what I needed", True)] * 3 + [("needed badly, too slow", False)] * 3)
    assert [theme.words for theme in themes] == ["needed", "needed badly", "exactly"]
