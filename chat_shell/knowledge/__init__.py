"""The knowledge tools, the numbering of documents, citations, and the client of the backend's retrieval."""
