"""The tests of both services."""

import os

from shared.chosen import let_grpc_ignore_children

let_grpc_ignore_children(os.environ)  # before a test imports gRPC: tests start more children than the services do
