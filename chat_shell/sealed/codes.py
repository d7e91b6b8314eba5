"""Why the room answered or did not: closed lists, and all that audit and logs learn of a refusal.

They are shared with the backend, which keeps the record.
"""

from shared.models.safe_summary import AnswerReason, Confidence, Failure, GateCode, PolicyRefusal, gate_blocked

__all__ = ["AnswerReason", "Confidence", "Failure", "GateCode", "PolicyRefusal", "gate_blocked"]
