"""Tools in general: their port, their answers, and the calls that models write."""
