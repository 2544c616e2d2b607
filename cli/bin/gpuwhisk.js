#!/usr/bin/env node
// npm links this file when it installs, before dist is built.
import '../dist/gpuwhisk.js';
