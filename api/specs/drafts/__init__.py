"""Tables of a model out of files that are no specs yet: lists of tables, and plans of TorchRec.

A draft has what its file says. What a file does not say, such as the hardware, is for the caller to add; the spec that
results is then checked like every other.
"""
