"""A second server, by another hand: what a stranger's correct `/jobs` service may look like.

It shares no line and no design with the shipped server: the standard library alone, one monitor for
the whole book, a thread per connection (or one loop, as a variation), its own HTTP. Wherever the
contract leaves room it can go either way (`config`), and it can carry one seeded fault at a time
(`faults`). The kit is measured on it: nobody who is right is accused, whoever is wrong is found.
"""
