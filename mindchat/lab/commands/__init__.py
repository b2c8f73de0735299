"""Commands of the laboratory: eval, bench, probe, calibrate.

Owns: flags and output of these commands. Does not own: the experiments themselves (lab.evals, lab.bench, lab.probes,
lab.calibration).
"""
