"""Models of any provider behind one port.

A provider with another API gets a package beside `chat_completions`, which implements the port `Model` with the parts
in `transport`, a member of `ModelApi` (`configured/entries.py`) and an entry in the table of adapters
(`configured/directory.py`).
"""
