"""A tenant moves between two cells of this machine under streams: `python -m tests.cells`, and a short form in e2e."""
