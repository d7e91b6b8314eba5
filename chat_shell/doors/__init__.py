"""gRPC and HTTP: two ways in, one turn behind them."""
