"""The ledger of restricted searches in SQL."""
