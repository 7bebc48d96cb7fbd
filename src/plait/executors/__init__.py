"""Executors: how batches are split over workers and brought together. They see batches and nothing inside."""
