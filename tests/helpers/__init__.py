"""Problems, oracles and small data sets that several test modules share."""
