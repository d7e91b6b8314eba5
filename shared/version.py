"""The version of this release, which the wheel, the command and the images carry."""

VERSION = "0.1.0"
