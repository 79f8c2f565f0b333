"""What runs inside a kernel's own interpreter. Standard library and IPython only: these files are
started by path in whatever environment a task names, where Quire itself may not be installed."""
