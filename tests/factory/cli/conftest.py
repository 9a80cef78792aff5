from .command import factory

__all__ = ["factory"]
