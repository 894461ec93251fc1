"""Review of documents in a browser: decisions in a log, a classifier that learns meanwhile, a server and a page."""
