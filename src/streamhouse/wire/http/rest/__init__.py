"""The messages of the REST API, without IO."""
