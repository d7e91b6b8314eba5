"""The turn as a value, the loop over it, tool rounds, limits."""
