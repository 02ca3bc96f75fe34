// Lets pages of AG-UI and of the AI SDK follow every generated path of the machine. The client of `ai` 7 is in a folder of
// its own, because it asks for a newer Node than the rest: where it cannot be installed, this says so and goes on without
// it; in CI it fails.
import { fileURLToPath } from 'node:url'
import { installPackages } from './install-packages.mjs'
import { jestStatus } from './suite.mjs'

const folder = fileURLToPath(new URL('../test/ui/newest', import.meta.url))
const given = process.argv.slice(2)
const variables = { STATEWRIGHT_SUITE: 'chat' }
let status = jestStatus(
  ['--runInBand', 'test/agui/paths.test.ts', 'test/ui/paths.test.ts', ...given],
  variables,
)
if (installPackages(folder, 'ai')) {
  status ||= jestStatus(['--runInBand', 'test/ui', ...given], { ...variables, AI_NEWEST: 'installed' })
} else {
  const isCI = process.env.CI === 'true'
  console.log(
    `Tests of the client of ai 7 ${isCI ? 'failed' : 'skipped'}: npm ci in test/ui/newest did not succeed.`,
  )
  if (isCI) status ||= 1
}
process.exit(status)
