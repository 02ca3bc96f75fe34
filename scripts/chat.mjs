// Lets AG-UI and AI SDK pages follow every generated path. The client of `ai` 7 needs a newer Node and has a separate folder. If it
// cannot be installed, it is skipped; in CI the suite fails.
import { fileURLToPath } from 'node:url'
import { installPackages } from './install-packages.mjs'
import { jestStatus } from './suite.mjs'

const folder = fileURLToPath(new URL('../test/ui/newest', import.meta.url))
const args = process.argv.slice(2)
const variables = { STATEWRIGHT_SUITE: 'chat' }
let status = jestStatus(
  ['--runInBand', 'test/agui/paths.test.ts', 'test/ui/paths.test.ts', ...args],
  variables,
)
if (installPackages(folder, 'ai')) {
  status ||= jestStatus(['--runInBand', 'test/ui', ...args], { ...variables, AI_NEWEST: 'installed' })
} else {
  const isCI = process.env.CI === 'true'
  console.log(
    `Tests of the client of ai 7 ${isCI ? 'failed' : 'skipped'}: npm ci in test/ui/newest did not succeed.`,
  )
  if (isCI) status ||= 1
}
process.exit(status)
