"""Changes of doses: shifts and derivatives, their representers, averages and forests."""
