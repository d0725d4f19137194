"""Experiments: pipelines compared, files run and resumed."""
