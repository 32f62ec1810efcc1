#!/usr/bin/env node
// Nothing that an old Node.js could stumble over is loaded before its version is known: no other static imports here.
import './check-node.js';

import('./cluster/main.ts');
