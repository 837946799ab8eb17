"""Parts of `bench.speed.growth_speed`."""
