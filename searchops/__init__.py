"""searchops: a retrieval-pipeline language for search agents that says where evidence was lost."""
