"""`make demo`: three agents, orders flowing, revenue on Spark, an agent killed on the way, and a table of it all."""
