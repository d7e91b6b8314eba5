"""What is due to be deleted, in SQL."""
