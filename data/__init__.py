"""Data files that ship with searchops."""
