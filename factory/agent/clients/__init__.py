"""Token clients: vLLM in process, and a vLLM server over HTTP."""
