"""The network: one step with its signals, in the weight format that is fastest here.

Owns: layers, kernels, prepared weights, the key-value cache, attention rows, entropy.
Does not own: choosing tokens (models.decode) or files (models.install).
"""
