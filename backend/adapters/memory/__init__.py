"""Events and signals within one process, for a backend of one replica."""
