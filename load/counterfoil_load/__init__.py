"""The stress profile: 4 submitters, 2 runners, 3 pollers, 2 waiters, and a verdict at the end."""
