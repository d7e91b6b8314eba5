"""The errors that the libraries of formats raise for malformed files."""

MALFORMED = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""None of them means a defect of this code; each format adds the exceptions of its library."""
