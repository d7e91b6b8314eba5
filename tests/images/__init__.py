"""The images, built and run: `make images`."""
