"""One offline HTML page about a recorded run: what was run, what was measured, where evidence was lost.

Everything on it is computed from records; nothing is run again. Pictures are SVG written by hand.
"""

from searchops.report.page import render, write_report

__all__ = ["render", "write_report"]
