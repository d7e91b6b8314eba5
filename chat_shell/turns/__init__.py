"""Turns: their state and rules, the loop that runs them, rounds of tool calls, and limits."""
