"""Messages between environments, products, the plans that environments issue, and clients."""
