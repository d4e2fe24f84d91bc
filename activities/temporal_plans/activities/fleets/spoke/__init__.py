"""The process of a spoke: it polls the hub for orders, hands them to the record on its own server,
and reports what became of them. It connects outwards only."""
