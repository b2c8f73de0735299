"""Calibration runs: thresholds and confidences fitted on questions whose answers are known.

Owns: the runs. Does not own: the fits that the chat reads (memory.learning.calibration).
"""
