"""The release that this command is of."""

VERSION = "0.1.0"
