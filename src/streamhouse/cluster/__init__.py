"""An agent's place among the others: who is there, who leads what, and who hands what over to whom."""
