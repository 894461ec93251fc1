"""What a person runs: thin commands over the library, and the only place that prints."""
