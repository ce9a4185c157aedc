"""Independent solutions of the learning problems, for comparison only.

``studies.reference.sdp`` states every primal problem for CVXPY (an optional dependency, loaded on first
use); ``studies.reference.recipe`` is the dual recipe of the paper, word for word. Neither shares code with
the rest of the package, so that an agreement between the two means something.
"""
