"""Skills: texts of the operator for particular tasks, which a model reads when it needs them."""
