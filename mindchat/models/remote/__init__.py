"""Models on a server: the Model port over HTTP.

Owns: requests, replies, what a server can do, scoring by its means. Does not own: models on this machine.
"""
