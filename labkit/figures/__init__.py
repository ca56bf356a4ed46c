"""Pictures from plain data; nothing is computed here."""
