"""Run untrusted commands: images, live sessions, snapshots, limits, and verification out of band."""
