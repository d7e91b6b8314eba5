"""Models of any provider behind one port.

A provider with another API gets a package beside `chat_completions` with its own `ProviderApi`
(`transport/streaming.py`), a member of `ModelApi` (`configured/entries.py`) and an entry in the table of
`configured/directory.py`.
"""
