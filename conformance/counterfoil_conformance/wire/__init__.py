"""Black-box checks of the HTTP clauses, against any server that a target file describes."""
