"""Reading as Spark does: by the planning API's word."""
