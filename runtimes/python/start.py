"""Starts runtime.py as a module: Python stores the compiled code of modules, but not that of the program itself."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runtime

del sys.path[0]
# The action may have a module of that name.
del sys.modules["runtime"]
runtime.main()
