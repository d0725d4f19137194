"""Scorers: what says how relevant a text is to a query."""
