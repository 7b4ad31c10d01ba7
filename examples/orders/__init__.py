"""Orders that are charged at a flaky payment service; see README.md."""
