"""How long things are kept, and how a person's things leave."""
