"""What rerun.py touches: the catalogue of experiments, running, comparing, claims, the page."""
