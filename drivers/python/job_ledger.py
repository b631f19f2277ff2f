"""The driver of the ledger that ships: `conform "exec:python drivers/python/job_ledger.py"`.

A ledger in Python needs no more than this; `python:counterfoil_server.ledger:JobLedger` drives the
same class without a process in between.
"""

import sys

from counterfoil_conformance.subjects.driver import serve
from counterfoil_server.ledger import JobLedger

if __name__ == "__main__":
    serve(JobLedger, "counterfoil JobLedger", sys.stdin, sys.stdout)
