import pytest

from answerkey.errors import ConfigError
from answerkey.targets.secrets import Secrets

ENVIRONMENT = {"KEY": "k3y/with+signs", "LONGER": "k3y/with+signs-and-more", "SHORT": "ab", "NAME": "acme"}


def test_references_are_expanded_wherever_they_stand() -> None:
    secrets = Secrets(ENVIRONMENT)
    given = {"a": "Bearer ${KEY}", "b": [1, "${NAME}/${SHORT}"], "c": "${OTHER:-plain}", "d": "$KEY {KEY}"}
    assert secrets.expand(given, "x") == {
        "a": "Bearer k3y/with+signs",
        "b": [1, "acme/ab"],
        "c": "plain",
        "d": "$KEY {KEY}",
    }


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"target bot: headers needs the environment variable MISSING.*export MISSING="
    ):
        Secrets({}).expand("${MISSING}", "target bot: headers")


def test_values_are_taken_out_of_messages_in_every_form() -> None:
    secrets = Secrets(ENVIRONMENT)
    secrets.expand("${KEY}${LONGER}${SHORT}", "x", private=True)
    said = "k3y/with+signs-and-more, k3y/with+signs, k3y%2Fwith%2Bsigns, ab"
    assert secrets.redact(said) == "${LONGER}, ${KEY}, ${KEY}, ab"


def test_replies_lose_only_what_was_sent_as_a_credential() -> None:
    secrets = Secrets(ENVIRONMENT)
    secrets.expand("${NAME}", "body")
    secrets.expand("${KEY}", "headers", private=True)
    assert secrets.redact_reply("acme has k3y/with+signs") == "acme has ${KEY}"
    assert secrets.redact("acme") == "${NAME}"
