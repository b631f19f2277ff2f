"""The lemmas put to CrossHair: a verdict for each, seeded defects that each must find, and the
table of what is proved.
"""
