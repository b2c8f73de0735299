"""Installing models: the catalogue, package registry and hub, downloads, GGUF and its conversion, the store, the
estimate of memory.

Owns: everything from a model's name to a checked folder on disk. Does not own: loading and running it (models.loader,
models.network).
"""
