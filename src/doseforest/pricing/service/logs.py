"""Logs as lines of JSON: what was asked for by which key, never about whom."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

logger = logging.getLogger("doseforest.pricing.service")


class JsonLines(logging.Formatter):
    """A record as one line; fields come from ``extra={"fields": …}``.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "ready", "levelname": "INFO", "created": 0.0})
    >>> JsonLines().format(record)
    '{"time": "1970-01-01T00:00:00.000+00:00", "level": "info", "event": "ready"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            # Where it happened, not what was said: messages of errors may quote a unit's features.
            kind, _, trace = record.exc_info
            line["error"] = kind.__name__ if kind is not None else None
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            if trace is not None:
                line["where"] = f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}"
        return json.dumps(line)


def log(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line."""
    if logger.isEnabledFor(level):
        logger.log(level, event, extra={"fields": fields})


def log_error(event: str, error: BaseException, **fields: Any) -> None:
    """Write a line about an error: its kind and place."""
    logger.error(event, exc_info=error, extra={"fields": fields})


def configure_logs(level: str) -> None:
    """Send our lines, and what the server has to say, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("doseforest.pricing.service", "uvicorn", "uvicorn.error"):
        own = logging.getLogger(name)
        own.handlers = [handler]
        own.propagate = False
        own.setLevel(level.upper())
