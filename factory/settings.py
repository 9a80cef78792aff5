"""The one settings model: `factory.toml`, overridden by environment variables, overridden by flags."""
