"""What of a restricted base a text may disclose: its canonical form, the words that may leave, and their combinations."""
