"""Experiments that go beyond the post: what it leaves open, and what a course claims without measuring it."""
