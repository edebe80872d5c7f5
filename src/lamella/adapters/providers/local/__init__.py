"""The model in this process: llama.cpp, the demo model's weights, and an exact account of what its cache holds.

Enters: neutral requests, GGUF files. Leaves: deltas, forecasts of cached tokens, progress while a prompt is read in.
May not enter: the network beyond the loopback, downloads, decisions about what a prompt says.
"""
