import pytest

from answerkey.errors import UnknownNameError, UsageError
from answerkey.store import open_store
from answerkey.store.tokens import AccessTokens


def test_a_token_works_until_it_is_revoked_and_only_its_digest_is_kept(store_url):
    with open_store(store_url) as store:
        tokens = AccessTokens(store)
        secret = tokens.add("ann", "annotator")
        assert tokens.check(secret).role == "annotator"
        assert tokens.check(secret + "x") is None
        assert tokens.check("") is None
        with store.database.reading() as connection:
            (row,) = connection.run("SELECT * FROM access_tokens").fetchall()
        assert secret not in str(row)
        with pytest.raises(UsageError, match="already a token 'ann'"):
            tokens.add("ann", "viewer")
        tokens.revoke("ann")
        assert tokens.check(secret) is None
        with pytest.raises(UnknownNameError, match="no token 'ann'"):
            tokens.revoke("ann")
        with pytest.raises(UsageError, match="token name"):
            tokens.add("a b", "viewer")
