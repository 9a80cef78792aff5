"""The embedded back end: rootless bubblewrap, one namespace helper per back end."""
