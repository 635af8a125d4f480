"""What is measured: one module for each letter of the table."""
