"""The decision service: doses decided online, with everything stored that learning needs.

`doseforest serve` runs it; [docs/service.md](../../../docs/service.md) says how. It needs the extra
`service`, and `postgres` where the database is PostgreSQL.
"""
