"""The laboratory: evaluation, probes, measurements, calibration, and their commands. The chat runs without it.

Owns: every experiment on the parts of the chat. Does not own: anything that a question needs to be answered.
"""
