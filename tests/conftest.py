"""Fixtures that several test files share."""

from spark_here import spark

__all__ = ["spark"]
