"""The independent oracle: says whether a text gives away what is protected. It knows nothing of the gate."""
