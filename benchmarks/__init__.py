"""Fast against plain, taking turns in one run."""
