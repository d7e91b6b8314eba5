"""Knowledge bases: members, documents, chunks, retrieval, and what metadata says of a base."""
