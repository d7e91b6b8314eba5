"""The codes of the sealed room's results, which are all that the audit and the logs contain about a refusal.

The definitions are shared with the backend, which keeps the audit.
"""

from shared.models.safe_summary import AnswerReason, Confidence, Failure, GateCode, PolicyRefusal, name_gate_block

__all__ = ["AnswerReason", "Confidence", "Failure", "GateCode", "PolicyRefusal", "name_gate_block"]
