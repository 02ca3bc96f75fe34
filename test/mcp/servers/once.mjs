// Starts only once. Its argument is the marker file that it leaves.
import { existsSync, writeFileSync } from 'node:fs'
import { serve, tool } from './raw-server.mjs'

const mark = process.argv[2]
if (existsSync(mark)) {
  console.error('I never come back.')
  process.exit(1)
}
writeFileSync(mark, '')
serve({ name: 'once', tools: () => [tool('die')], call: () => process.exit(1) })
