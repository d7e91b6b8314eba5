"""What operators see of sweeps."""
