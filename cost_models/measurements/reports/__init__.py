"""What other benchmarks report: their logs and result files, read as measured rows."""
