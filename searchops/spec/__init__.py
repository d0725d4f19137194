"""Pipeline files and texts to pipelines and back; names only, nothing in them is ever evaluated."""

from searchops.spec.build import build_pipeline
from searchops.spec.nodes import Node, as_node
from searchops.spec.planned import PlannedIndex
from searchops.spec.problems import SpecErrors
from searchops.spec.reading import KEYS, IndexSpec, Spec, read_spec
from searchops.spec.schema import json_schema
from searchops.spec.text import parse_text
from searchops.spec.variables import FromEnvironment
from searchops.spec.writing import dump, to_nodes, to_text

__all__ = [
    "KEYS",
    "FromEnvironment",
    "IndexSpec",
    "Node",
    "PlannedIndex",
    "Spec",
    "SpecErrors",
    "as_node",
    "build_pipeline",
    "dump",
    "json_schema",
    "parse_text",
    "read_spec",
    "to_nodes",
    "to_text",
]
