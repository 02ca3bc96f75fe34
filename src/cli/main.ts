#!/usr/bin/env node
// Older versions would fail somewhere later, so this module loads nothing else before the check.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`statewright: Node ${process.versions.node} is too old. Use Node 20.19 or later.\n`)
  process.exit(2)
}
await import('./process.js')
