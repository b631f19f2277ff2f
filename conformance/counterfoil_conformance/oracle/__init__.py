"""Which answers the spec allows: recorded histories, and the judges that read them."""
