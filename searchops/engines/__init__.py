"""Engines: what answers queries over a collection."""
