"""Events and signals in Redis or Valkey, for a backend of several replicas."""
