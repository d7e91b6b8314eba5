"""What a text may disclose of a restricted base: canonical form, words that may leave, and combinations that may not."""
