"""Prices from formulas: the roofline, TorchRec's estimator, serving and memory tiers."""
