"""The reference model server. It stands alone: it knows neither the spec nor the kit."""
