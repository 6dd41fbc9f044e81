"""CheckedClaim: a claim and what became of it."""

from typing import Any

import msgspec

from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.direct import Contradiction

__all__ = ["CheckedClaim", "contradicted", "derived", "unsupported"]


class CheckedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim and what became of it."""

    claim: Claim
    supported: bool
    # Where the support stands ("tool_calls[0].result.rows[2].amount", "sources[1]", "question", "arithmetic").
    where: str = ""
    # The text or formula that supports it, or what the evidence says instead.
    text: str = ""
    # Why it is not supported.
    why: str = ""
    # The evidence has this very figure for something else.
    contradicted: bool = False

    def document(self) -> dict[str, Any]:
        """As it stands in a result's findings."""
        shown: dict[str, Any] = {
            "text": self.claim.text,
            "start": self.claim.start,
            "end": self.claim.end,
            "type": self.claim.kind,
            "supported": self.supported,
        }
        if self.supported:
            shown["evidence"] = {
                "where": self.where,
                ("formula" if self.where == "arithmetic" else "text"): self.text,
            }
        else:
            shown["why"] = self.why
            if self.where:
                shown["evidence"] = {"where": self.where, "text": self.text}
        return shown


def derived(claim: Claim, formula: str) -> CheckedClaim:
    """A claim that follows from the evidence."""
    return CheckedClaim(claim=claim, supported=True, where="arithmetic", text=formula)


def contradicted(claim: Claim, instead: Contradiction) -> CheckedClaim:
    """A claim of which the evidence says something else."""
    return CheckedClaim(
        claim=claim,
        supported=False,
        contradicted=True,
        where=instead.where,
        text=instead.text,
        why=f"contradicts the evidence, which has {instead.text}",
    )


def unsupported(claim: Claim, why: str) -> CheckedClaim:
    """A claim that nothing supports."""
    return CheckedClaim(claim=claim, supported=False, why=why)
