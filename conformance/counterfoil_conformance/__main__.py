"""`python -m counterfoil_conformance` is `counterfoil`."""

import sys

from counterfoil_conformance.cli import main

sys.exit(main())
