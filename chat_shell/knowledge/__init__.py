"""The knowledge tools, the numbers of documents, citations, and the way to the backend."""
