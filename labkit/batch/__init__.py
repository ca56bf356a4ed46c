"""Runs notebooks without a person in front of them: papermill, a verdict for each, one report."""
