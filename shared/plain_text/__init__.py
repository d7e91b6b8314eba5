"""Reading text of documents and answers in one normal form, so that what looks alike compares alike."""
