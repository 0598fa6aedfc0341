"""What it costs: one module per room, each with `run`. `make bench` prints all of them."""
