"""The Docker Engine back end, through the docker SDK."""
