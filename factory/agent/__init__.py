"""The one agent loop: action formats, tools, token clients, rollouts."""
