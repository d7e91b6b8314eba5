"""Knowledge bases in OpenAI's words: a vector store is a base, and its files are the documents of the base."""
