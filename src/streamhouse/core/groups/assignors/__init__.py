"""Server-side assignors: pure functions from subscriptions and partition counts to one owner per partition."""
