"""What a person runs: thin commands over the library, and the place that prints."""
