"""Tasks over generated file trees, composed of skills."""
