"""The fixed words that models read, and the order in which a turn's messages are sent."""
