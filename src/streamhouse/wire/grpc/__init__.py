"""gRPC as bytes: message definitions, the modules generated from them, and how errors are named."""
