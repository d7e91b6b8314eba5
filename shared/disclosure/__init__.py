"""What a text may disclose of a restricted base: its form, the words that may leave, and combinations that may not."""
