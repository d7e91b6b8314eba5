"""Groups of people: who is in which, and the roles that a group has in things."""
