"""What ends an answer that was cut because it would have repeated a restricted knowledge base."""

ANSWER_CUT = (
    "The answer ends here: what followed would have repeated restricted knowledge, which can be used and not shown."
)
