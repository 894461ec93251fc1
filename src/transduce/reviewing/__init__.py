"""Review of documents in a browser: decisions in a log, a classifier that learns meanwhile, a local server and a page."""
