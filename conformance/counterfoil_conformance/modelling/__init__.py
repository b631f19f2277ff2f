"""Running the model checker and showing what it has found: tables, JSON, pictures, pages."""
