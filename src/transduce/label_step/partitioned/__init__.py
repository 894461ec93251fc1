"""Label steps over rows in many places: the same answers as in one, with prices travelling instead of costs."""
