"""What the service keeps: tables, migrations, one writer, backups, retention."""
