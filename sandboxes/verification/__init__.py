"""Grade a finished episode in a fresh sandbox; the verdict comes back out of band."""
