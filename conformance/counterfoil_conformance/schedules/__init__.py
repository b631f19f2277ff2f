"""Every interleaving of small threaded scenarios, on the ledger that ships.

`scheduler` runs threads one step at a time; `instrument` puts the steps into the shipped code,
without a copy of it; `explore` walks all orders; `scenarios` are the small races worth walking;
`check` judges what came out.
"""
