"""The proof that restricted knowledge does not leak."""
