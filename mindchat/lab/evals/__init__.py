"""Evaluation: does it work, by how much, at what cost.

Owns: datasets, metrics, the runner over arms, reports and charts, memory chains. Does not own: how a session is built
(make_session is injected by the command line) or what a turn does (it reads a Trace). Source: methods of MIND Tables 1
to 4, CoRe Tables 1 to 10.
"""
