"""The questions about the `pydocs` collection."""
