"""`doseforest serve`: the decision service."""

from __future__ import annotations

from typing import Annotated

import typer

from doseforest.pricing.cli.service_options import (
    DEFAULT_DATA,
    Data,
    Url,
    database_url,
    opened,
    said_plainly,
)

Host = Annotated[
    str,
    typer.Option(help="Address to listen on. Others than this machine need 0.0.0.0, and a proxy."),
]
Port = Annotated[int, typer.Option(min=1, max=65535)]
Workers = Annotated[int, typer.Option(min=1, help="Processes; one per core is enough.")]
Fallback = Annotated[
    str | None,
    typer.Option(
        help="Dose where no policy is active or it fails; without one, a 503. A number, or one for "
        "each component: express=0,premium=0."
    ),
]
Rate = Annotated[float, typer.Option(min=0, help="Requests per second of each key; 0: no limit.")]
MaxUnits = Annotated[int, typer.Option(min=1, help="Units of one request.")]
MaxBody = Annotated[int, typer.Option(min=1000, help="Bytes of one request.")]
Refresh = Annotated[float, typer.Option(min=0.01, help="Seconds between looks for changes.")]
Drain = Annotated[
    float, typer.Option(min=0, help="Seconds that it still serves after the signal to stop.")
]
OpenMetrics = Annotated[bool, typer.Option("--open-metrics", help="Metrics without a key.")]
Proxies = Annotated[str, typer.Option(help="Proxies whose X-Forwarded headers are believed.")]
LogLevel = Annotated[str, typer.Option(help="debug, info, warning or error.")]


def serve(
    data: Data = DEFAULT_DATA,
    database: Url = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Workers = 1,
    fallback_dose: Fallback = None,
    rate: Rate = 1000.0,
    max_units: MaxUnits = 1000,
    max_body: MaxBody = 4_000_000,
    refresh: Refresh = 1.0,
    drain: Drain = 2.0,
    open_metrics: OpenMetrics = False,
    proxies: Proxies = "127.0.0.1",
    log_level: LogLevel = "info",
) -> None:
    """Decide on doses over HTTP and keep every decision.

    Begin with a key and a policy:

        doseforest keys create --role admin --name me

        doseforest registry publish policy.dose --activate

        doseforest serve

    The dashboard is at http://127.0.0.1:8000/dashboard, the API at /openapi.json. The embedded
    database is in the data folder; PostgreSQL is used where --database names one.
    """
    with said_plainly():
        if log_level not in ("debug", "info", "warning", "error"):
            raise typer.BadParameter("It is one of debug, info, warning, error.")
        from doseforest.pricing.service.served_doses import read_dose
        from doseforest.pricing.service.server import Listening, run
        from doseforest.pricing.service.service_settings import Settings

        with opened(data, database):
            pass  # tables are there, or the command says what to do
        settings = Settings(
            database=database_url(data, database),
            policies=str(data.absolute() / "policies"),
            fallback_dose=None if fallback_dose is None else read_dose(fallback_dose),
            rate=rate,
            max_units=max_units,
            max_body=max_body,
            refresh=refresh,
            drain=drain,
            workers=workers,
            open_metrics=open_metrics,
        )
        code = run(settings, Listening(host, port, proxies, log_level))
    raise typer.Exit(code)
