"""One module per subcommand that the kit brings itself: `add_arguments(parser)` and `run(args)`."""
