"""A cluster as it is stored, without processes: rows and objects that agree until a test breaks them."""
